// The order of the steps is the promise; where a step fails, the ones before are taken back in reverse.
//
//   started       the image runs, and has proved that it is ours      failure: it is killed
//   gate closed   no request runs, no connection is read              failure: the gate opens again
//   shared        each guarded object has a lease of both             failure: its leases end with it
//   handed        lock, socket, connections are known to both         failure: ours still stand
//   standing by   writers wait; records name the other                failure: records name us again, and we answer
//   take_over     the last word: from its answer on the other serves  no answer and no life: as before
#include "server/handoff.h"

#include "base/fault_point.h"
#include "base/ids.h"
#include "base/json.h"
#include "lease/liveness.h"
#include "os/control_folder.h"
#include "os/workspace_folder.h"
#include "server/adoption_errors.h"
#include "server/handoff_channel.h"

namespace holdfast::server {
namespace {

constexpr int kOfferMs = 2'000;  // a guard's own thread waits for it, and a writer for that

// Whether two texts are the same, in a time that does not tell where they differ.
bool same_secret(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return false;
  unsigned differences = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    differences |= static_cast<unsigned>(static_cast<unsigned char>(one[at]) ^ static_cast<unsigned char>(other[at]));
  }
  return differences == 0;
}

class OtherImage : public Successor {
 public:
  OtherImage(os::DescriptorChannel channel, std::unique_ptr<os::SuccessorProcess> process)
      : channel_(std::move(channel)), process_(std::move(process)), caller_(channel_, [this] {
          if (process_) process_->kill();
        }) {}

  Result<void> authenticate(const std::string& secret, const Json& welcome);
  Result<Json> call(const std::string& method, const Json& parameters = Json::object(),
                    const std::vector<const os::Handle*>& objects = {}, int limit_ms = kCallMs) {
    return caller_.call(method, parameters, objects, limit_ms);
  }

  Result<void> begin_guard(const GuardedPlace& place) override {
    HF_TRY(const Json done, call("handoff/guard",
                                 Json{{"scope", place.scope},
                                      {"generation", place.generation},
                                      {"leaf", place.leaf},
                                      {"relative", place.relative},
                                      {"state", place.state}},
                                 {&place.parent}));
    static_cast<void>(done);
    return {};
  }
  Result<bool> offer_object(const std::string& scope, const os::Handle& object, const std::string& temporary_name,
                            bool leased) override {
    HF_TRY(const Json held,
           call("handoff/object", Json{{"scope", scope}, {"temporary_name", temporary_name}, {"leased", leased}},
                {&object}, kOfferMs));
    return held.value("held", false);
  }
  void settle_object(const std::string& scope, bool taken) override {
    (void)call("handoff/object_settled", Json{{"scope", scope}, {"taken", taken}}, {}, kOfferMs);
  }

  std::unique_ptr<os::SuccessorProcess> release_process() { return std::move(process_); }
  os::SuccessorProcess& process() { return *process_; }
  // Killed and reaped: it answers nobody after this. true: it had said before that it serves.
  bool end() {
    process_->end();
    for (;;) {
      const auto left = channel_.receive(0);
      if (!left.ok() || !left->has_value()) return false;
      const auto said = parse_json((*left)->text);
      if (said && said->is_object() && said->value("result", Json()) == Json{{"serving", true}}) return true;
    }
  }

 private:
  os::DescriptorChannel channel_;
  std::unique_ptr<os::SuccessorProcess> process_;
  HandoffCaller caller_;
};

// The first message has to be squad/lease_adopt with the secret; nothing else is answered before, and it is asked once.
Result<void> OtherImage::authenticate(const std::string& secret, const Json& welcome) {
  HF_FAULT_POINT("handoff_before_secret");
  HF_CHECK(channel_.send(dump_ascii(Json{{"secret", secret}})));
  HF_TRY(const auto request, receive_request(channel_, kAuthenticationMs));
  if (!request) return Refusal(Code::handoff_failed, "the new image ended before it authenticated");
  const auto refuse = [&](Code code, const std::string& why) {
    Refusal refusal(code, why);
    (void)answer_request(channel_, request->id, refusal);
    return refusal;
  };
  const Json& said = request->parameters;
  if (request->method != kLeaseAdopt || !said.is_object()) {
    return refuse(Code::adoption_secret_invalid, "the new image asked for something before it authenticated");
  }
  if (!same_secret(text_member(said, "secret"), secret)) {
    return refuse(Code::adoption_secret_invalid, "the new image does not know the secret of this handoff");
  }
  if (text_member(said, "protocol") != kHandoffProtocol) {
    return refuse(Code::handoff_refused,
                  "the new image hands over by another protocol: " + printable(text_member(said, "protocol")) +
                      ", build " + printable(text_member(said, "build")));
  }
  if (exact_u64(said.value("pid", Json())) != static_cast<std::uint64_t>(process_->pid())) {
    return refuse(Code::adoption_secret_invalid, "whoever authenticates is not the process that was started");
  }
  return answer_request(channel_, request->id, welcome);
}

class Handoff {
 public:
  Handoff(const Shared& state, Client& asker_client) : state_(state), asker_client_(asker_client) {}
  Result<Json> run(const os::ProcessIdentity& asker);

 private:
  Result<void> start_image(const os::ProcessIdentity& asker);
  Result<void> prepare();
  Result<void> pass_what_serves();
  Result<void> pass_connections();
  Result<void> transfer();
  Result<Json> finish();
  void take_back();

  const Shared& state_;
  Client& asker_client_;
  std::shared_ptr<OtherImage> other_;
  std::vector<std::string> scopes_;
  os::ProcessIdentity successor_;
  std::string session_;
  bool gate_closed_ = false;
  bool stood_by_ = false;
  bool transferred_ = false;
};

Result<void> Handoff::start_image(const os::ProcessIdentity& asker) {
  HF_TRY(const os::Handle image, os::image_of(asker, asker_client_.connection.peer().user));
  HF_FAULT_POINT("handoff_before_spawn");
  os::Handle theirs;
  HF_TRY(os::DescriptorChannel channel, os::DescriptorChannel::make_pair(theirs));
  const std::vector<std::string> words = {"holdfast", "--workspace", state_->root, "adopt",
                                          std::to_string(os::SuccessorProcess::kInheritedNumber)};
  HF_TRY(auto process, os::SuccessorProcess::start(image, words, theirs));
  theirs.reset();
  other_ = std::make_shared<OtherImage>(std::move(channel), std::move(process));
  HF_CHECK(other_->authenticate(random_hex(32), Json{{"session", state_->session},
                                                     {"process", os::this_process().to_json()},
                                                     {"build", HOLDFAST_VERSION},
                                                     {"transition_limit_ms", state_->options.transition_limit_ms},
                                                     {"connection_limit", state_->options.connection_limit},
                                                     {"idle_limit_ms", state_->options.idle_limit_ms}}));
  HF_TRY(const Json opened, other_->call("handoff/open"));
  successor_ = os::ProcessIdentity::from_json(opened.value("process", Json()));
  session_ = text_member(opened, "session");
  if (successor_.pid == other_->process().pid() && !session_.empty()) return {};
  return Refusal(Code::handoff_failed, "the new image does not say who it is");
}

Result<void> Handoff::prepare() {
  HF_CHECK(state_->close_gate());
  gate_closed_ = true;
  HF_TRY(scopes_, state_->engine->begin_handover());
  HF_FAULT_POINT("handoff_before_guards");
  HF_CHECK(state_->engine->share_guards(other_));
  HF_TRY(const Json guarded, other_->call("handoff/guards_stand"));
  static_cast<void>(guarded);
  return {};
}

Result<void> Handoff::pass_what_serves() {
  HF_TRY(const Json taken, other_->call("handoff/serving", Json::object(),
                                        {&state_->server_lock->handle(), &state_->listener->socket()}));
  static_cast<void>(taken);
  return pass_connections();
}

// Every session but the asker's is parked: nobody reads from these but the other image.
Result<void> Handoff::pass_connections() {
  std::list<std::shared_ptr<Client>> clients;
  {
    const std::scoped_lock lock(state_->mutex);
    clients = state_->clients;
  }
  for (const auto& client : clients) {
    if (client->asks_handoff) continue;
    Json said = {{"read", nullptr}};
    if (client->read) {
      said["read"] = client->read->document;
      said["queue_place"] = client->read->queue_place;
    }
    HF_TRY(const Json taken, other_->call("handoff/connection", said, {&client->connection.socket()}));
    static_cast<void>(taken);
  }
  return {};
}

Result<void> Handoff::transfer() {
  stood_by_ = true;
  const Json states = state_->engine->guards_stand_by();
  HF_TRY(const Json learned, other_->call("handoff/states", states));
  static_cast<void>(learned);
  HF_FAULT_POINT("handoff_before_transfer");
  transferred_ = true;
  HF_TRY(const Json moved, state_->engine->transfer_holder(scopes_, successor_, session_));
  static_cast<void>(moved);
  HF_FAULT_POINT("handoff_after_transfer");
  HF_TRY(const Json serves, other_->call("handoff/take_over"));
  static_cast<void>(serves);
  return {};
}

// The other image serves. What is left is to go.
Result<Json> Handoff::finish() {
  {
    const std::scoped_lock lock(state_->mutex);
    other_->process().leave();
    state_->successor = other_->release_process();
  }
  state_->hand_on();
  HF_FAULT_POINT("handoff_before_withdraw");
  state_->engine->withdraw();
  return Json{{"ready", true},
              {"pid", static_cast<std::uint64_t>(successor_.pid)},
              {"session", session_},
              {"workspace", printable(state_->root)},
              {"replaced", static_cast<std::uint64_t>(os::this_process().pid)}};
}

void Handoff::take_back() {
  if (!other_) return;
  const std::int64_t pid = other_->process().pid();
  if (other_->end()) {
    // It served, if only for a moment, and answered too late: what it did is not ours to judge. This server leaves, and
    // the next one finds records that name the dead.
    state_->hand_on();
    state_->termination->request();
    return;
  }
  // Its record, if it published one, says nothing any more.
  if (const auto folder = os::open_workspace(state_->root); folder.ok()) {
    if (const auto files = os::open_control_folder(folder->squad); files.ok()) {
      (void)(*files)->remove(liveness_record_path(pid));
    }
  }
  if (transferred_) {
    // A full disk may keep the records from being put right at once; they name a dead process, which is no server's.
    if (auto back = state_->engine->take_over(successor_, session_); !back.ok()) {
      (void)state_->engine->take_over(successor_, session_);
    }
  }
  if (gate_closed_) state_->engine->guards_answer_again();
  if (gate_closed_) state_->open_gate();
}

Result<Json> Handoff::run(const os::ProcessIdentity& asker) {
  Result<void> done = start_image(asker);
  if (done.ok()) done = prepare();
  if (done.ok()) done = pass_what_serves();
  if (done.ok()) done = transfer();
  if (done.ok()) return finish();
  take_back();
  return std::move(done).refusal();
}

}  // namespace

Result<Json> hand_over(const Shared& state, Client& asker_client, const os::ProcessIdentity& asker) {
  {
    const std::scoped_lock lock(state->mutex);
    if (state->ending) return Refusal(Code::handoff_refused, "the server is ending");
    if (state->handoff_runs || state->moved) {
      return Refusal(Code::handoff_in_progress, "another handoff is under way");
    }
    state->handoff_runs = true;
    asker_client.asks_handoff = true;
  }
  Result<Json> outcome = Handoff(state, asker_client).run(asker);
  const std::scoped_lock lock(state->mutex);
  state->handoff_runs = false;
  asker_client.asks_handoff = false;
  state->changed.notify_all();
  return outcome;
}

}  // namespace holdfast::server
