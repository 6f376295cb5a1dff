#include "support/row_database.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/json.h"

namespace holdfast::support {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// From /proc/PID/stat: the fourth field, behind a name that may hold anything.
pid_t parent_of(const std::string& stat) {
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return state == 'Z' ? 0 : parent;
}

}  // namespace

void RowDatabase::make() const {
  run("CREATE TABLE accounts(id bigint PRIMARY KEY, version bigint NOT NULL, state text)");
  run("INSERT INTO accounts VALUES(7,1,'new')");
}

std::vector<RowDatabase::Row> RowDatabase::run(const std::string& sql) const {
  return kind_ == "sqlite" ? run_sqlite(sql) : run_postgres(sql);
}

std::string RowDatabase::one(const std::string& sql) const {
  const auto rows = run(sql);
  return rows.empty() || rows.front().empty() ? "" : rows.front().front();
}

std::vector<RowDatabase::Row> RowDatabase::run_sqlite(const std::string& sql) const {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(where_.c_str(), &opened);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, &sqlite3_close);
  EXPECT_EQ(code, SQLITE_OK) << where_;
  sqlite3_busy_timeout(opened, 20'000);
  std::vector<Row> rows;
  const auto add = [](void* into, int count, char** values, char**) {
    Row row;
    for (int at = 0; at < count; ++at) row.emplace_back(values[at] == nullptr ? "" : values[at]);
    static_cast<std::vector<Row>*>(into)->push_back(std::move(row));
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(opened, sql.c_str(), add, &rows, nullptr), SQLITE_OK) << sql << ": " << sqlite3_errmsg(opened);
  return rows;
}

std::vector<RowDatabase::Row> RowDatabase::run_postgres(const std::string& sql) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(where_.c_str()), &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
      << sql << ": " << PQerrorMessage(connection.get());
  std::vector<Row> rows;
  for (int line = 0; line < PQntuples(result.get()); ++line) {
    Row row;
    for (int at = 0; at < PQnfields(result.get()); ++at) row.emplace_back(PQgetvalue(result.get(), line, at));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> RowDatabase::receiver_add(const std::string& name) const {
  return {"receiver", "add",   name, "--kind",           kind_,    "--database", where_, "--table",
          "accounts", "--key", "id", "--version-column", "version"};
}

std::string RowDatabase::setting(const std::string& state) {
  return dump_canonical(Json{{"key", {{"id", {{"integer", "7"}}}}}, {"set", {{"state", {{"text", state}}}}}});
}

std::vector<pid_t> receiver_processes_of(pid_t server) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](char one) { return one >= '0' && one <= '9'; })) continue;
    if (parent_of(text_of(entry.path() / "stat")) != server) continue;
    if (text_of(entry.path() / "cmdline").find("receiver-role") != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace holdfast::support
