#include "support/row_worker.h"

#include "base/json.h"
#include "support/row_databases.h"

namespace holdfast::support {
namespace {

using receivers::Applied;
using receivers::Receiver;
using receivers::Transaction;

// Halts at one point: whoever reads this process's lines stops it, kills it or says "go".
class Halt {
 public:
  explicit Halt(std::string point) : point_(std::move(point)) {}
  void at(const char* point) const {
    if (point_ != point) return;
    say("at " + point_);
    hear();
  }

 private:
  std::string point_;
};

class HaltingTransaction : public Transaction {
 public:
  HaltingTransaction(std::unique_ptr<Transaction> real, const Halt& halt) : real_(std::move(real)), halt_(halt) {}
  Result<std::optional<Generation>> mark(const std::string& resource) override {
    return behind("mark", real_->mark(resource));
  }
  Result<void> set_mark(const std::string& resource, Generation mark) override {
    return behind("raised", real_->set_mark(resource, mark));
  }
  Result<std::optional<Applied>> applied(const std::string& operation_id) override {
    return behind("applied", real_->applied(operation_id));
  }
  Result<void> remember(const Applied& applied) override { return behind("remembered", real_->remember(applied)); }
  Result<Json> apply(const Command& command, const std::string& payload, const Capture&) override {
    const auto captured = [&](const Json& before) -> Result<Json> { return behind("captured", Result<Json>(before)); };
    return behind("effect", real_->apply(command, payload, captured));
  }
  Result<void> commit() override {
    halt_.at("commit");
    return behind("committed", real_->commit());
  }
  bool is_effect_refused() const override { return real_->is_effect_refused(); }
  bool is_overtaken() const override { return real_->is_overtaken(); }

 private:
  template <class T>
  T behind(const char* point, T result) const {
    halt_.at(point);
    return result;
  }
  std::unique_ptr<Transaction> real_;
  const Halt& halt_;
};

class HaltingReceiver : public Receiver {
 public:
  HaltingReceiver(Receiver& real, const Halt& halt) : real_(real), halt_(halt) {}
  std::string kind() const override { return real_.kind(); }
  Result<std::unique_ptr<Transaction>> begin() override { return halting(real_.begin()); }
  Result<std::unique_ptr<Transaction>> begin_for(const Command& command, const std::string& payload) override {
    return halting(real_.begin_for(command, payload));
  }
  Result<Json> observe(const Command& command, const std::string& payload) override {
    auto seen = real_.observe(command, payload);
    halt_.at("observed");
    return seen;
  }

 private:
  Result<std::unique_ptr<Transaction>> halting(Result<std::unique_ptr<Transaction>> begun) const {
    if (!begun.ok()) return begun;
    halt_.at("begin");
    return std::unique_ptr<Transaction>(new HaltingTransaction(std::move(*begun), halt_));
  }
  Receiver& real_;
  const Halt& halt_;
};

Json to_json(const receivers::Current& current) {
  const auto number = [](const std::optional<Generation>& one) { return one ? Json(one->text()) : Json(); };
  return Json{{"issuer", {current.issuer.workspace_id, current.issuer.authority}},
              {"workspace_mark", number(current.workspace_mark)},
              {"knows_tenancy", current.knows_tenancy},
              {"generation", number(current.generation)},
              {"owner", current.owner},
              {"task_id", current.task_id},
              {"epoch", current.epoch.text()},
              {"expired", current.expired}};
}

receivers::Current from_json(const Json& value) {
  const auto number = [&](const char* name) {
    const auto held = exact_u64(value.at(name));
    return held ? std::optional(Generation{*held}) : std::nullopt;
  };
  receivers::Current current;
  current.issuer = {value.at("issuer").at(0), value.at("issuer").at(1)};
  current.workspace_mark = number("workspace_mark");
  current.knows_tenancy = value.at("knows_tenancy");
  current.generation = number("generation");
  current.owner = value.at("owner");
  current.task_id = value.at("task_id");
  current.epoch = Epoch{exact_u64(value.at("epoch")).value_or(0)};
  current.expired = value.at("expired");
  return current;
}

Json answer_of(const Result<receivers::Delivery>& delivery) {
  if (!delivery.ok()) return Json{{"decision", delivery.refusal().code_name()}, {"machine", true}};
  return Json{{"decision", delivery->decision.decision},
              {"outcome", delivery->outcome},
              {"refusal", delivery->refusal ? Json(delivery->refusal->message()) : Json()}};
}

int serve_deliveries(const std::vector<std::string>& arguments) {
  const auto receiver = open_row_receiver(parse_json(arguments.at(0)).value(), "accounts", {"id"});
  if (!receiver.ok()) return 1;
  say("open");
  for (std::string line = hear(); !line.empty(); line = hear()) {
    const Json asked = parse_json(line).value();
    const Halt halt(asked.at("point"));
    HaltingReceiver halting(**receiver, halt);
    say(answer_of(receivers::deliver(halting, asked.at("command"), asked.at("payload").get<std::string>(),
                                     from_json(asked.at("current"))))
            .dump());
  }
  return 0;
}

const RegisterRole kRowWorker("row-worker", serve_deliveries);

}  // namespace

RowWorker::RowWorker(const Json& config) : child_(spawn_as("row-worker", {config.dump()})) { child_.read_line(); }

void RowWorker::send(const Command& command, const std::string& payload, const receivers::Current& current,
                     const std::string& point) {
  child_.write(
      Json{{"command", command.to_json()}, {"payload", payload}, {"current", to_json(current)}, {"point", point}}
          .dump() +
      "\n");
}

Json RowWorker::answer() { return parse_json(child_.read_line()).value_or(Json()); }

}  // namespace holdfast::support
