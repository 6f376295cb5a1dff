#include "receivers/postgres/scratch_rows.h"

#include <array>

#include "base/ids.h"
#include "base/json.h"
#include "receivers/postgres/session.h"

namespace holdfast::receivers {
namespace {

using postgres::Rows;
using postgres::Session;

constexpr std::array kTables = {"accounts", "holdfast_marks", "holdfast_operations"};

class PostgresScratch : public ScratchRows {
 public:
  PostgresScratch(std::unique_ptr<Session> session, std::string connection, std::string schema)
      : session_(std::move(session)), connection_(std::move(connection)), schema_(std::move(schema)) {}
  ~PostgresScratch() override {
    // The receiver's connection may still hold a lock; nobody is kept waiting for long.
    static_cast<void>(session_->run("SET lock_timeout TO '5s'"));
    static_cast<void>(session_->run("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE"));
  }

  Result<void> make() {
    HF_CHECK(session_->run("CREATE SCHEMA " + schema_));
    HF_CHECK(session_->run("CREATE TABLE " + of("accounts") + "(id bigint PRIMARY KEY, state text, version bigint)"));
    HF_CHECK(session_->run("INSERT INTO " + of("accounts") + " VALUES(" + std::to_string(kScratchRow) + ",'new',1)"));
    return {};
  }

  Json config() const override {
    return Json{{"connection", connection_},
                {"table", of(kScratchTable)},
                {"key_columns", {"id"}},
                {"version_column", "version"}};
  }

  // One statement, so one snapshot.
  Result<Json> look() override {
    HF_TRY(const Rows known, session_->run("SELECT to_regclass('" + of("holdfast_marks") + "') IS NOT NULL"));
    const auto whole = [&](const char* table, const char* columns, const char* key) {
      return "(SELECT coalesce(json_agg(json_build_array(" + std::string(columns) + ") ORDER BY " + key +
             ")::text,'[]') FROM " + of(table) + ")";
    };
    const bool has_marks = known.is_true(0);
    const std::string kept = has_marks ? whole("holdfast_marks", "resource,generation", "resource") + "," +
                                             whole("holdfast_operations", "operation_id", "operation_id")
                                       : "'[]','[]'";
    HF_TRY(const Rows found,
           session_->run("SELECT " + whole("accounts", "id::text,state,version::text", "id") + "," + kept));
    Json seen = {{"rows", Json::array()}, {"marks", Json::object()}, {"operations", Json::array()}};
    const auto parsed = [&](int column) { return parse_json(found.text(column)).value_or(Json::array()); };
    for (const Json& row : parsed(0)) {
      seen["rows"].push_back({{"id", row.at(0)}, {"state", row.at(1)}, {"version", row.at(2)}});
    }
    for (const Json& mark : parsed(1)) seen["marks"][mark.at(0).get<std::string>()] = mark.at(1);
    for (const Json& applied : parsed(2)) seen["operations"].push_back(applied.at(0));
    return seen;
  }

  Result<void> keep() override {
    for (const char* table : kTables) {
      HF_CHECK(session_->run("CREATE TABLE " + of(table) + "_kept AS SELECT * FROM " + of(table)));
    }
    return {};
  }

  Result<void> restore() override {
    HF_CHECK(session_->run("BEGIN"));
    for (const char* table : kTables) {
      const auto emptied = session_->run("DELETE FROM " + of(table));
      const auto filled = session_->run("INSERT INTO " + of(table) + " SELECT * FROM " + of(table) + "_kept");
      if (!emptied.ok() || !filled.ok()) {
        static_cast<void>(session_->run("ROLLBACK"));
        return emptied.ok() ? filled.refusal() : emptied.refusal();
      }
    }
    HF_CHECK(session_->run("COMMIT"));
    return {};
  }

  Result<void> lose_marks() override {
    HF_CHECK(session_->run("DELETE FROM " + of("holdfast_marks")));
    return {};
  }

 private:
  std::string of(const char* table) const { return schema_ + "." + table; }
  std::unique_ptr<Session> session_;
  std::string connection_;
  std::string schema_;
};

}  // namespace

Result<std::unique_ptr<ScratchRows>> make_scratch_postgres(const std::string& connection) {
  HF_TRY(auto session, Session::open(connection));
  auto scratch =
      std::make_unique<PostgresScratch>(std::move(session), connection, "holdfast_challenge_" + random_hex(8));
  HF_CHECK(scratch->make());
  return std::unique_ptr<ScratchRows>(std::move(scratch));
}

}  // namespace holdfast::receivers
