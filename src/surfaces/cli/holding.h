// Holding: the leases that a `hold` has, renewed from a thread of its own.
//
// Calling sequence: acquire(); bind() with the program before it runs; start_renewing(); lost() now and then;
// release(). The deadline is counted from the moment at which the last acknowledged renewal was sent, on the boot
// clock: what the server believes can only be later. Where no renewal is acknowledged in time, the lease counts as lost
// a little before its deadline, so that the program is told while it still holds. A connection that broke while its
// server lives on (field report B29) is made anew, and the renewals go on. A server that died is started again,
// and each lease re-granted once; one that was stopped in order is not: the leases stay, unenforced, and are renewed
// directly. What changes stands in lease_file(), replaced as a whole. Threads: acquire, bind and release from one;
// lost() from any.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/local_socket.h"
#include "os/process.h"
#include "os/workspace_folder.h"
#include "surfaces/cli/output.h"
#include "surfaces/cli/request_path.h"

namespace holdfast::cli {

class Holding {
 public:
  Holding(const std::string& root, const Surroundings& surroundings, Output& output)
      : root_(root), surroundings_(surroundings), output_(output) {}
  ~Holding();
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  // `request` is that of `acquire`; its answer.
  Result<Json> acquire(const Json& request);
  Result<void> bind(const os::ProcessIdentity& command);
  // Where the program finds its keys: written now, and again whenever they change.
  Result<void> keep_lease_file(const std::string& path);
  std::vector<std::pair<std::string, std::string>> environment() const;
  // `on_loss` is called once, from the renewing thread.
  Result<void> start_renewing(std::function<void()> on_loss);
  // Why the lease is gone; nullopt while it is held.
  std::optional<std::string> lost() const;
  // The same, asked anew of the clock: this process may have been stopped, or its server answer nobody.
  bool lost_by_now();
  // Whether this process started that server: it is not the program's.
  bool started_server(std::int64_t pid) const;
  // Every lease, the last one first. The answers of `release`, and the first refusal.
  struct Released {
    std::vector<Json> documents;
    std::optional<Refusal> refusal;
  };
  Released release();

 private:
  struct Held {
    Json record;
    std::int64_t until_ms = 0;  // boot clock
    std::int64_t ttl_ms = 0;
  };

  static std::int64_t margin_of(const Held& held);
  Result<Json> ask(const std::string& verb, Json arguments, bool bound);
  Json keys_of(const Json& record) const;
  void take(Held& held, const Json& record, std::int64_t sent_ms);
  void renew_until_stopped();
  bool all_are_listed();
  std::int64_t renew_all();  // ms until the next time
  bool renew(Held& held);
  Json holder_now();
  void after_the_server();
  Result<void> grant_again(Held& held);
  Result<void> write_lease_file();
  void lose(const std::string& reason);
  bool watch_server();  // whether it takes the connection that tells of its death
  void note_server(std::int64_t pid);

  const std::string& root_;
  const Surroundings& surroundings_;
  Output& output_;
  Json arguments_;  // of the acquire
  os::ProcessIdentity command_;
  std::string lease_file_;
  std::vector<Held> held_;

  mutable std::mutex mutex_;  // of what follows, and of held_ while the thread runs
  std::condition_variable changed_;
  std::shared_ptr<os::Connection> watched_;
  std::string lost_;
  std::function<void()> on_loss_;
  std::vector<std::int64_t> servers_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::cli
