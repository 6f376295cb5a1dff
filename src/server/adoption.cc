#include "server/adoption.h"

#include <chrono>
#include <thread>

#include "base/fault_point.h"
#include "base/ids.h"
#include "base/json.h"
#include "os/file.h"
#include "os/workspace_folder.h"
#include "server/adoption_errors.h"
#include "server/handoff_channel.h"
#include "server/lifetime.h"
#include "server/server_lock.h"

namespace holdfast {
namespace {

using server::HandoffRequest;
using server::Shared;

constexpr int kOrdersMs = 60'000;  // longer than any step of the other side may take
constexpr auto kDeathLimit = std::chrono::milliseconds(10'000);

class Adoption {
 public:
  Adoption(os::DescriptorChannel channel, os::WorkspaceFolder folder, std::unique_ptr<os::ControlFolder> files,
           std::shared_ptr<const receivers::ReceiverSet> receivers)
      : channel_(std::move(channel)),
        folder_(std::move(folder)),
        files_(std::move(files)),
        receivers_(std::move(receivers)) {}

  Result<int> run();

 private:
  Result<void> authenticate();
  Result<void> follow_orders();
  Result<Json> obey(HandoffRequest& order);
  Result<Json> open();
  Result<Json> take_what_serves(std::vector<os::Handle>& objects);
  Result<Json> take_connection(HandoffRequest& order);
  Result<void> finish_alone();
  Result<int> leave(const Refusal& refusal);

  os::DescriptorChannel channel_;
  os::WorkspaceFolder folder_;
  std::unique_ptr<os::ControlFolder> files_;
  std::shared_ptr<const receivers::ReceiverSet> receivers_;
  Shared state_;
  std::optional<LivenessRecord> record_;
  os::ProcessIdentity predecessor_;
  std::string predecessor_session_;
  bool guarding_ = false;  // every guard of the other side stands here, too
  bool complete_ = false;  // and the lock and the socket are here
  bool told_to_serve_ = false;
};

Result<void> Adoption::authenticate() {
  HF_FAULT_POINT("adopt_before_authenticate");
  HF_TRY(const auto first, channel_.receive(server::kAuthenticationMs));
  const auto given = first ? parse_json(first->text) : std::nullopt;
  const std::string secret = given ? text_member(*given, "secret") : "";
  if (secret.empty()) return Refusal(Code::adoption_not_expected, "no secret was given to this process");
  const os::ProcessIdentity self = os::this_process();
  const Json request = {{"jsonrpc", "2.0"},
                        {"id", 1},
                        {"method", kLeaseAdopt},
                        {"params",
                         {{"secret", secret},
                          {"build", HOLDFAST_VERSION},
                          {"protocol", server::kHandoffProtocol},
                          {"pid", static_cast<std::uint64_t>(self.pid)}}}};
  HF_CHECK(channel_.send(dump_ascii(request)));
  HF_TRY(const auto answer, channel_.receive(server::kAuthenticationMs));
  const auto document = answer ? parse_json(answer->text) : std::nullopt;
  if (!document || !document->is_object()) return Refusal(Code::handoff_failed, "no answer to squad/lease_adopt");
  if (document->contains("error")) return Refusal::from_json((*document)["error"].value("data", Json::object()));
  const Json welcome = document->value("result", Json::object());
  predecessor_ = os::ProcessIdentity::from_json(welcome.value("process", Json()));
  predecessor_session_ = text_member(welcome, "session");
  ServeOptions options;
  options.receivers = receivers_;
  options.transition_limit_ms = welcome.value("transition_limit_ms", options.transition_limit_ms);
  options.connection_limit = welcome.value("connection_limit", options.connection_limit);
  options.idle_limit_ms = welcome.value("idle_limit_ms", options.idle_limit_ms);
  HF_TRY(state_, server::make_state(folder_.root_path, options));
  state_->session = random_hex(16);
  state_->begin_closed();
  HF_FAULT_POINT("adopt_after_authenticate");
  return {};
}

// No recovery: nothing has crashed. What is under way is the other side's until it says so.
Result<Json> Adoption::open() {
  HF_TRY(state_->engine, server::open_engine(*state_));
  HF_TRY(record_, LivenessRecord::publish(*files_, folder_.squad, state_->session));
  HF_FAULT_POINT("adopt_before_guards");
  return Json{{"process", os::this_process().to_json()}, {"session", state_->session}};
}

Result<Json> Adoption::take_what_serves(std::vector<os::Handle>& objects) {
  if (!guarding_ || objects.size() != 2) return Refusal(Code::handoff_failed, "no lock and no socket were sent");
  os::LockFile lock = os::LockFile::taken_over(std::move(objects[0]));
  // Ours is the lock of the other side: it can be taken again through this description, and through no other.
  HF_TRY(const bool ours, lock.try_lock(os::LockMode::exclusive));
  HF_TRY(const os::LockFile look, open_server_lock(folder_.squad));
  HF_TRY(const bool held, look.is_held_by_another(os::LockMode::shared));
  // A workspace that was moved since leaves another one, or none, at its path.
  HF_TRY(const os::Facts sent, os::facts_of_open(lock.handle()));
  HF_TRY(const os::Facts found, os::facts_of_open(look.handle()));
  if (!ours || !held || sent.identity != found.identity)
    return Refusal(Code::handoff_failed, "what was sent is not the lock of this workspace");
  state_->server_lock.emplace(std::move(lock));
  HF_TRY(state_->listener, os::Listener::taken_over(folder_.squad, std::move(objects[1])));
  if (!server::start_helpers(state_)) return Refusal(Code::handoff_failed, "no thread could be started");
  complete_ = true;
  return Json{{"held", true}};
}

Result<Json> Adoption::take_connection(HandoffRequest& order) {
  if (!complete_ || order.objects.size() != 1) return Refusal(Code::handoff_failed, "no connection was sent");
  const auto client = std::make_shared<server::Client>(os::Connection::taken_over(std::move(order.objects[0])));
  if (const Json document = order.parameters.value("read", Json()); !document.is_null()) {
    client->read = server::ReadRequest{document, order.parameters.value("queue_place", std::uint64_t{0})};
  }
  HF_CHECK(server::take_client(state_, client));
  return Json{{"held", true}};
}

Result<Json> Adoption::obey(HandoffRequest& order) {
  const Json& said = order.parameters;
  if (order.method == "handoff/open") return open();
  if (!state_->engine) return Refusal(Code::handoff_failed, "an order out of turn");
  Engine& engine = *state_->engine;
  const std::string scope = text_member(said, "scope");
  if (order.method == "handoff/guard" && order.objects.size() == 1) {
    HF_CHECK(engine.begin_guard(GuardedPlace{scope, text_member(said, "generation"), text_member(said, "leaf"),
                                             text_member(said, "relative"), said.value("state", Json()),
                                             std::move(order.objects[0])}));
    return Json{{"held", true}};
  }
  if (order.method == "handoff/object" && order.objects.size() == 1) {
    HF_TRY(const bool held, engine.offer_object(scope, std::move(order.objects[0]), text_member(said, "temporary_name"),
                                                said.value("leased", false)));
    return Json{{"held", held}};
  }
  if (order.method == "handoff/object_settled") {
    engine.settle_object(scope, said.value("taken", false));
    return Json{{"held", true}};
  }
  if (order.method == "handoff/guards_stand") {
    HF_FAULT_POINT("adopt_after_guards");
    guarding_ = true;
    return Json{{"held", true}};
  }
  if (order.method == "handoff/serving") return take_what_serves(order.objects);
  if (order.method == "handoff/connection") return take_connection(order);
  if (order.method == "handoff/states") {
    HF_CHECK(engine.learn(said));
    return Json{{"held", true}};
  }
  if (order.method == "handoff/take_over" && complete_) {
    HF_FAULT_POINT("adopt_before_serving");
    told_to_serve_ = true;
    return Json{{"serving", true}};
  }
  return Refusal(Code::handoff_failed, "an order that is none: " + printable(order.method));
}

Result<void> Adoption::follow_orders() {
  while (!told_to_serve_) {
    HF_TRY(auto order, server::receive_request(channel_, kOrdersMs));
    if (!order) return finish_alone();
    const Result<Json> outcome = obey(*order);
    const auto answered = server::answer_request(channel_, order->id, outcome);
    if (!answered.ok()) return finish_alone();
  }
  // After the answer: until it was sent nothing had been done here, and the other side could go on as it was.
  state_->engine->guards_answer();
  return {};
}

// The other side is gone. What is complete here goes on here, once its death is proved: it never closes the channel
// otherwise without ending this process.
Result<void> Adoption::finish_alone() {
  if (!complete_) return Refusal(Code::handoff_failed, "the other image went away before everything was handed over");
  const auto give_up = std::chrono::steady_clock::now() + kDeathLimit;
  while (os::liveness_of(predecessor_) != os::Liveness::dead) {
    if (std::chrono::steady_clock::now() >= give_up) {
      return Refusal(Code::handoff_failed, "the other image closed the channel and is not proved dead");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  state_->engine->guards_answer();
  HF_TRY(const Json moved, state_->engine->take_over(predecessor_, predecessor_session_));
  static_cast<void>(moved);
  HF_TRY(const Json recovered, state_->engine->recover(Caller{.process = os::this_process(), .bound = false}));
  static_cast<void>(recovered);
  return {};
}

// Without a trace, and without a word on the connections: they are the other side's.
Result<int> Adoption::leave(const Refusal& refusal) {
  if (!state_) return refusal;
  state_->hand_on();
  if (state_->engine && state_->listener) (void)server::finish(*state_);
  if (record_) static_cast<void>(record_->remove(*files_));
  return refusal;
}

Result<int> Adoption::run() {
  if (const auto known = authenticate(); !known.ok()) return leave(known.refusal());
  if (const auto done = follow_orders(); !done.ok()) return leave(done.refusal());
  static_cast<void>(state_->server_lock->note(dump_ascii(os::this_process().to_json())));
  state_->listener->answer_as_this_process();
  state_->open_gate();
  HF_FAULT_POINT("adopt_after_serving");
  return server::serve_to_the_end(state_, *files_, record_);
}

}  // namespace

Result<int> adopt(const std::string& root, os::Handle::Native number,
                  std::shared_ptr<const receivers::ReceiverSet> receivers) {
  HF_TRY(os::DescriptorChannel channel, os::DescriptorChannel::inherited(number));
  HF_TRY(os::WorkspaceFolder folder, os::open_workspace(root));
  HF_TRY(auto files, os::open_control_folder(folder.squad));
  os::name_this_process("holdfast");
  os::keep_footprint_small();
  return Adoption(std::move(channel), std::move(folder), std::move(files), std::move(receivers)).run();
}

}  // namespace holdfast
