// The receivers that a process can open, by kind; main builds it by hand, so that reading main shows what can run.
//
// A Port is a receiver as the engine uses it: here, or in a process of its own (receivers/remote).
// Threads: one at a time on a Port. Errors: those of receiver.h.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "receivers/receiver.h"

namespace holdfast::receivers {

class Port {
 public:
  virtual ~Port() = default;
  virtual Result<Delivery> deliver(const Json& command, const std::string& payload, const Current& current,
                                   const Transaction::Capture& capture) = 0;
  virtual Result<void> raise_mark(const std::string& resource, Generation to, std::optional<Generation> expected) = 0;
  virtual Result<Generation> make_mark(const std::string& resource, Generation first) = 0;
  virtual Result<Generation> reseed(const std::string& resource, Generation mark) = 0;
  virtual Result<std::optional<Generation>> read_mark(const std::string& resource) = 0;
  virtual Result<void> settle(const std::string& operation_id, const std::optional<Json>& outcome) = 0;
};

// A receiver in this very process.
class LocalPort : public Port {
 public:
  explicit LocalPort(std::unique_ptr<Receiver> receiver) : receiver_(std::move(receiver)) {}
  Result<Delivery> deliver(const Json& command, const std::string& payload, const Current& current,
                           const Transaction::Capture& capture) override {
    return receivers::deliver(*receiver_, command, payload, current, capture);
  }
  Result<void> raise_mark(const std::string& resource, Generation to, std::optional<Generation> expected) override {
    return receivers::raise_mark(*receiver_, resource, to, expected);
  }
  Result<Generation> make_mark(const std::string& resource, Generation first) override {
    return receivers::make_mark(*receiver_, resource, first);
  }
  Result<Generation> reseed(const std::string& resource, Generation mark) override {
    return receivers::reseed(*receiver_, resource, mark);
  }
  Result<std::optional<Generation>> read_mark(const std::string& resource) override {
    return receivers::read_mark(*receiver_, resource);
  }
  Result<void> settle(const std::string& operation_id, const std::optional<Json>& outcome) override {
    return receiver_->settle(operation_id, outcome);
  }

 private:
  std::unique_ptr<Receiver> receiver_;
};

class ReceiverSet {
 public:
  using Open = std::function<Result<std::unique_ptr<Port>>(const Json& config)>;
  void add(const std::string& kind, Open open) { kinds_[kind] = std::move(open); }
  // `usage` for a kind that is not in the set.
  Result<std::unique_ptr<Port>> open(const std::string& kind, const Json& config) const {
    const auto found = kinds_.find(kind);
    if (found != kinds_.end()) return found->second(config);
    std::string known;
    for (const auto& [name, unused] : kinds_) known += (known.empty() ? "" : ", ") + name;
    return Refusal(Code::usage, "no receiver of kind " + kind + "; there are: " + known, Json{{"kind", kind}});
  }

 private:
  std::map<std::string, Open> kinds_;
};

}  // namespace holdfast::receivers
