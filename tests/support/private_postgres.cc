#include "support/private_postgres.h"

#include <libpq-fe.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace holdfast::support {
namespace {

namespace fs = std::filesystem;

// The newest server that Debian's packages have installed.
std::string programs_folder() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    if (fs::exists(entry.path() / "bin/postgres", error)) found.push_back((entry.path() / "bin").string());
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? "" : found.back();
}

std::vector<std::string> as_ordinary_user(std::vector<std::string> words) {
  if (::geteuid() != 0) return words;
  std::vector<std::string> all = {"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

bool answers(const std::string& connection) {
  PGconn* opened = PQconnectdb(connection.c_str());
  const bool is_up = PQstatus(opened) == CONNECTION_OK;
  PQfinish(opened);
  return is_up;
}

}  // namespace

PrivatePostgres::PrivatePostgres() : programs_(programs_folder()) {
  if (programs_.empty()) {
    why_not_ = "no PostgreSQL server is installed";
    return;
  }
  std::string pattern = "/tmp/holdfast-postgres-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return;
  folder_ = pattern;
  if (const passwd* nobody = ::getpwnam("nobody"); ::geteuid() == 0 && nobody != nullptr) {
    if (::chown(folder_.c_str(), nobody->pw_uid, nobody->pw_gid) != 0) return;
  }
  Child made = spawn(as_ordinary_user({programs_ + "/initdb", "-D", folder_ + "/data", "-U", "holdfast", "-A", "trust",
                                       "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"}));
  made.close_input();
  const std::string printed = made.read_all();
  if (made.wait() != 0) {
    why_not_ = "initdb failed: " + printed;
    return;
  }
  ready_ = start();
}

bool PrivatePostgres::start() {
  server_ = std::make_unique<Child>(
      spawn(as_ordinary_user({programs_ + "/postgres", "-D", folder_ + "/data", "-k", folder_, "-c",
                              "listen_addresses=", "-c", "fsync=on", "-c", "logging_collector=off"})));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!answers(connection())) {
    if (std::chrono::steady_clock::now() > give_up) {
      why_not_ = "the server did not answer within 60 s";
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

std::string PrivatePostgres::pooled() {
  const std::string connection = "host=" + folder_ + " port=6432 user=holdfast dbname=postgres";
  if (pooler_) return connection;
  std::ofstream(folder_ + "/users.txt") << "\"holdfast\" \"\"\n";
  std::ofstream(folder_ + "/pgbouncer.ini") << "[databases]\npostgres = host=" << folder_ << "\n[pgbouncer]\n"
                                            << "listen_addr =\nlisten_port = 6432\nunix_socket_dir = " << folder_
                                            << "\nauth_type = trust\nauth_file = " << folder_
                                            << "/users.txt\npool_mode = transaction\ndefault_pool_size = 2\n"
                                            << "max_client_conn = 200\n";
  pooler_ = std::make_unique<Child>(spawn(as_ordinary_user({"/usr/sbin/pgbouncer", "-q", folder_ + "/pgbouncer.ini"})));
  if (eventually([&] { return answers(connection); }, 30'000)) return connection;
  why_not_ = "pgbouncer did not answer within 30 s";
  return "";
}

bool PrivatePostgres::dump(const std::string& file) {
  Child made = spawn({programs_ + "/pg_dump", "--clean", "--if-exists", "-f", file, "-d", connection()});
  return made.wait() == 0;
}

bool PrivatePostgres::restore(const std::string& file) {
  Child made = spawn(
      {programs_ + "/psql", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-o", "/dev/null", "-f", file, "-d", connection()});
  return made.wait() == 0;
}

void PrivatePostgres::crash_and_restart() {
  // Immediate shutdown: as a crash, with recovery at the next start, but no child process is left behind.
  server_->signal(SIGQUIT);
  server_->wait();
  ready_ = start();
}

PrivatePostgres::~PrivatePostgres() {
  if (pooler_) {
    pooler_->kill();
    pooler_->wait();
  }
  if (server_) {
    server_->signal(SIGQUIT);
    server_->wait();
  }
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(folder_, error);
}

}  // namespace holdfast::support
