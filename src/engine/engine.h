// Engine: the one place that runs the whole flow, request -> scope -> lease -> guard -> replace -> evidence.
//
// Calling sequence: Engine::open(root, options); perform(request) for each request, from any thread. In server mode
// also tick() every 100 ms or so from a thread of its own (deadlines, what the guard saw, dead clients).
//
// A request is {"verb":…, "arguments":{…}}; docs/formats/socket.md lists verbs, arguments and answers. An answer is the
// verb's document as the command line prints it with --json. Scopes arrive as typed, with "cwd" (absolute) beside them.
//
// Modes: `observer` reads only; `direct` changes the workspace without a server (short-lived: no guard; the caller
// holds servers/server.lock shared for the engine's life); `server` holds guards.
// Promises: every outcome of a verb that changes or refuses something is an evidence event; decision, publish and
// verification happen under one transition; staging, capture and hashing before it.
// Threads: perform() may be called from many threads at once. Errors: every code of the catalogue.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/successor.h"
#include "holdfast/result.h"
#include "os/handle.h"
#include "os/process.h"
#include "receivers/receiver_set.h"

namespace holdfast {

// The bytes of a write, read once from front to end. 0 from read() is the end; a refusal aborts the write.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  virtual Result<std::size_t> read(char* into, std::size_t size) = 0;
  // Asked once before authorisation: whether the one who sends is still there to be answered.
  virtual bool sender_is_gone() const { return false; }
};

struct Caller {
  os::ProcessIdentity process;  // of the verb that asks
  bool bound = false;           // `hold`, `run`: the lease ends when this process is proven gone
  bool is_bridge = false;       // the lease names this process as its client, and outlives it
  // Whether it is still there to be answered; asked while it waits. Empty: it is.
  std::function<bool()> is_gone = {};
  // The place in the queue that this request had under another image, or before a handoff that came to nothing; 0:
  // none.
  std::uint64_t queue_place = 0;
};

// What long work says on its way: {"done":BYTES} of a write, {"waiting":{"place","holders","waited_seconds"}} of an
// acquire that waits.
using ProgressReport = std::function<void(const Json&)>;

enum class EngineMode { observer, direct, server };

struct EngineOptions {
  EngineMode mode = EngineMode::observer;
  std::string session;  // server mode: of the liveness record
  int transition_limit_ms = 30'000;
  std::shared_ptr<const receivers::ReceiverSet> receivers = {};  // none: every receiver is unreachable
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(const std::string& root, EngineOptions options);
  ~Engine();

  // Whether a verb changes anything (and so goes through the server where one lives).
  static bool is_mutating(const std::string& verb);
  static bool knows(const std::string& verb);

  Result<Json> perform(const Json& request, const Caller& caller, ContentSource* content = nullptr,
                       const ProgressReport& progress = {});

  // For `read` and `quarantine export`: the bytes themselves, opened, and the document that describes them.
  struct Bytes {
    os::Handle object;
    Json document;
  };
  Result<Bytes> open_bytes(const Json& request);

  // For `run`: the object of a canonical file scope, opened without following links; whether it is the workspace
  // itself.
  struct Place {
    std::optional<os::Handle> object;  // nullopt: nothing is there, or it cannot be opened
    std::string kind;                  // file folder other none
    bool is_workspace = false;
  };
  Result<Place> open_place(const std::string& scope);

  // Server mode: what is due now. Returns the number of milliseconds until it should be called again (at most 100).
  int tick();
  // Server mode: on start, before serving: settle or classify intents, release what a dead client had bound.
  Result<Json> recover(const Caller& caller);
  // Server mode, for a handoff: these tenancies name the successor from now on, all or none (engine/transfer.h).
  Result<Json> transfer_holder(const std::vector<std::string>& scopes, const os::ProcessIdentity& process,
                               const std::string& session);
  // Server mode, for a handoff; while it lasts no request runs and nobody calls tick(). engine/handover.h says in which
  // order. Those who wait are sent back with handoff_in_progress (details.queue_place) until resume_waiting().
  void suspend_waiting();
  void resume_waiting();
  std::size_t waiting_count() const;
  Result<std::vector<std::string>> begin_handover();
  Result<void> share_guards(const std::shared_ptr<Successor>& successor);
  Json guards_stand_by();
  void guards_answer_again();
  Result<void> begin_guard(GuardedPlace place);
  Result<bool> offer_object(const std::string& scope, os::Handle object, const std::string& temporary_name,
                            bool leased);
  void settle_object(const std::string& scope, bool taken);
  Result<void> learn(const Json& states);
  void guards_answer();
  // The tenancies that name this other image, which is gone, name this process from now on.
  Result<Json> take_over(const os::ProcessIdentity& process, const std::string& session);
  // Nobody waits any longer: those who do are refused with server_unreachable. Before shut_down().
  void end_waiting();
  // Ends the guards; tenancies stay.
  void shut_down();
  // The same where another image guards already: its records are left alone.
  void withdraw();

  // `init`: makes .squad where it is missing. {"workspace","created","workspace_id"}
  static Result<Json> initialise(const std::string& root, const Json& arguments);

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holdfast
