// A delivery that is judged by what was read without a lock, and changed by one call that looks whether it still is so.
// Private to the PostgreSQL receiver.
//
// Calling sequence: as any Transaction, for the very command that it was made for. Nothing is begun on the server
// before commit(), so that nothing waits for whoever is paused here. Errors: receiver_outcome_unknown; a lock that was
// not to be had within 30 s is receiver_unreachable; whatever else the server refuses is is_overtaken(), and is judged
// anew under locks, where it gets its name. Threads: one at a time.
#pragma once
#include "receivers/postgres/procedures.h"
#include "receivers/receiver.h"

namespace holdfast::receivers::postgres {

class WatchedTransaction : public Transaction {
 public:
  WatchedTransaction(Session& session, Procedures& procedures, Change change, Judged judged,
                     std::optional<bool>& seen_after)
      : session_(session),
        procedures_(procedures),
        seen_after_(seen_after),
        change_(std::move(change)),
        judged_(std::move(judged)),
        is_overtaken_(judged_.is_remembered) {}

  Result<std::optional<Generation>> mark(const std::string& resource) override;
  Result<void> set_mark(const std::string& resource, Generation mark) override;
  Result<std::optional<Applied>> applied(const std::string& operation_id) override;
  Result<void> remember(const Applied& applied) override;
  Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) override;
  Result<void> commit() override;
  bool is_overtaken() const override { return is_overtaken_; }

 private:
  Session& session_;
  Procedures& procedures_;
  std::optional<bool>& seen_after_;
  Change change_;
  Judged judged_;
  std::optional<Generation> raised_;
  std::optional<Applied> remembered_;
  bool is_overtaken_;  // until it is changed, where what was judged is a memory
};

}  // namespace holdfast::receivers::postgres
