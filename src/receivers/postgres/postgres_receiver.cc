#include "receivers/postgres/postgres_receiver.h"

#include <utility>

#include "base/json.h"
#include "receivers/postgres/session.h"
#include "receivers/postgres/statements.h"
#include "receivers/postgres/watched_transaction.h"

namespace holdfast::receivers {
namespace {

using postgres::Query;
using postgres::Rows;
using postgres::Session;
using postgres::Statements;

std::optional<bool> is_true(const Result<Rows>& rows) {
  return rows.ok() ? std::optional(rows->count() == 1 && rows->is_true(0)) : std::nullopt;
}

// What was asked together with the BEGIN, in the order of its answers.
struct Asked {
  std::string resource;
  std::string operation_id;
  std::optional<RowChange> change;
};

// Under locks from its first statement. Reads at once what deliver() will ask for, and sends what changes anything
// together with the COMMIT: two round trips.
class PostgresTransaction : public Transaction {
 public:
  // `seen_after`: whether the row holds what was set, looked at behind the commit.
  PostgresTransaction(Session& session, const RowTarget& target, const Statements& statements,
                      std::optional<bool>& seen_after)
      : session_(session), target_(target), statements_(statements), seen_after_(seen_after) {}
  ~PostgresTransaction() override {
    if (!ended_) static_cast<void>(session_.run("ROLLBACK"));
  }

  Result<void> begin(Asked asked) {
    std::vector<Query> queries = Statements::begin();
    const std::size_t settings = queries.size();
    if (!asked.operation_id.empty()) {
      queries.push_back(statements_.mark(asked.resource));
      queries.push_back(statements_.applied(asked.operation_id));
      if (asked.change) queries.push_back(statements_.row(*asked.change));
    }
    auto answers = session_.run_together(queries);
    // A connection that died while it rested is noticed by its first use; nothing has begun then.
    if (!answers[0].ok()) {
      HF_CHECK(session_.connect_again());
      answers = session_.run_together(queries);
    }
    for (std::size_t at = 0; at < settings; ++at) {
      if (!answers[at].ok()) return answers[at].refusal();
    }
    for (std::size_t at = settings; at < answers.size(); ++at) answers_.emplace_back(std::move(answers[at]));
    asked_ = std::move(asked);
    return {};
  }

  Result<std::optional<Generation>> mark(const std::string& resource) override {
    HF_TRY(const Rows rows, answer(0, resource == asked_.resource, statements_.mark(resource)));
    if (rows.count() == 0) return std::optional<Generation>();
    const auto generation = parse_u64(rows.text(0));
    return generation ? std::optional(Generation{*generation}) : std::nullopt;
  }

  Result<void> set_mark(const std::string& resource, Generation mark) override {
    changes_.push_back(statements_.set_mark(resource, mark));
    return {};
  }

  Result<std::optional<Applied>> applied(const std::string& operation_id) override {
    HF_TRY(const Rows rows, answer(1, operation_id == asked_.operation_id, statements_.applied(operation_id)));
    if (rows.count() == 0) return std::optional<Applied>();
    HF_TRY(Applied applied, applied_from_texts(operation_id, rows.text(0), rows.text(1)));
    return std::optional(std::move(applied));
  }

  Result<void> remember(const Applied& applied) override {
    changes_.push_back(statements_.remember(applied, effect_));
    return {};
  }

  Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) override {
    HF_TRY(RowChange change, read_row_change(command, payload, target_));
    HF_TRY(const Rows before, answer(2, asked_.operation_id == command.operation_id, statements_.row(change)));
    if (before.count() == 0) return record_missing(command, change);
    if (before.count() > 1) {
      return Refusal(Code::receiver_unreachable, "receiver_unreachable: the key columns name more than one row");
    }
    postgres::HeldRow held{before.value(0), before.text(0), {}};
    int at = 0;
    for (const auto& [name, value] : change.set) held.values[name] = before.value(++at);
    HF_TRY(Json outcome, postgres::planned_outcome(command, change, held, capture));
    changes_.push_back(statements_.update(change));
    effect_ = std::move(change);
    return outcome;
  }

  Result<void> commit() override {
    const std::size_t last = changes_.size();
    changes_.push_back({"COMMIT", {}});
    if (effect_) changes_.push_back(statements_.reads_back(*effect_));
    const auto answers = session_.run_together(changes_);
    for (std::size_t at = 0; at < last; ++at) {
      if (!answers[at].ok()) return refused(at, answers[at].refusal());
    }
    const Result<Rows>& committed = answers[last];
    if (committed.ok()) {
      ended_ = true;
      if (effect_) seen_after_ = is_true(answers.back());
      // The COMMIT of a transaction that had failed is answered with ROLLBACK.
      if (committed->command() == "COMMIT") return {};
      return Refusal(Code::receiver_unreachable, "receiver_unreachable: the transaction was rolled back");
    }
    return refused(last, committed.refusal());
  }
  bool is_effect_refused() const override { return effect_refused_; }

 private:
  // What was asked for with the BEGIN answers once; anything else is asked for by itself.
  Result<Rows> answer(std::size_t at, bool is_the_one, const Query& query) {
    if (!is_the_one || at >= answers_.size() || !answers_[at]) return session_.run(query.sql, query.parameters);
    return *std::exchange(answers_[at], std::nullopt);
  }

  // Everything was sent at once: the commit may have been reached.
  Result<void> refused(std::size_t at, const Refusal& why) {
    const std::string sqlstate = why.details().value("sqlstate", "");
    if (session_.is_lost(why)) {
      ended_ = !session_.is_connected();
      return postgres::outcome_unknown(why);
    }
    effect_refused_ = effect_ && at < 2;  // the UPDATE, and the operation that is only kept where it reads back
    if (!effect_refused_ || at != 1 || sqlstate != Statements::kDoesNotReadBack) return why;
    return Refusal(Code::record_version_changed,
                   "record_version_changed: the row does not read back as it was written (a trigger, or a column "
                   "that converts); nothing was committed",
                   Json{{"key", values_to_json(effect_->key)}});
  }

  Session& session_;
  const RowTarget& target_;
  const Statements& statements_;
  std::optional<bool>& seen_after_;
  Asked asked_;
  std::vector<std::optional<Result<Rows>>> answers_;
  std::vector<Query> changes_;
  std::optional<RowChange> effect_;
  bool effect_refused_ = false;
  bool ended_ = false;
};

class PostgresReceiver : public Receiver {
 public:
  PostgresReceiver(std::unique_ptr<Session> session, RowTarget target)
      : session_(std::move(session)),
        target_(std::move(target)),
        statements_(target_),
        procedures_(*session_, statements_) {}
  std::string kind() const override { return "postgres"; }

  Result<void> prepare() {
    HF_TRY(const bool is_there, has_its_tables());
    if (!is_there) {
      // Of two who make a table at once, PostgreSQL refuses one in spite of IF NOT EXISTS: what counts is what is
      // there.
      const auto answers = session_->run_together(statements_.create());
      HF_TRY(const bool is_made, has_its_tables());
      if (!is_made) return answers[0].ok() ? answers[1].refusal() : answers[0].refusal();
    }
    HF_CHECK(session_->run(statements_.columns().sql));
    const Query schemas = statements_.schemas();
    HF_TRY(const Rows found, session_->run(schemas.sql, schemas.parameters));
    if (found.count() != 1) return Refusal(Code::receiver_unreachable, "receiver_unreachable: a table was not found");
    statements_.settle(found);
    return {};
  }

  Result<std::unique_ptr<Transaction>> begin() override { return begun({}); }
  Result<std::unique_ptr<Transaction>> begin_for(const Command& command, const std::string& payload) override {
    Asked asked{command.resource, command.operation_id, std::nullopt};
    // One that is malformed is refused where its turn comes.
    if (auto change = change_of(command, payload); change.ok()) asked.change = std::move(*change);
    if (const auto accepted = std::exchange(accepted_, std::nullopt)) procedures_.learn(*accepted);
    if (auto watched = watching(asked)) return std::unique_ptr<Transaction>(std::move(watched));
    return begun(std::move(asked));
  }

  Result<Json> observe(const Command& command, const std::string& payload) override {
    HF_TRY(const RowChange change, change_of(command, payload));
    // Behind the commit, in a transaction of its own: what was asked then answers once.
    auto seen = std::exchange(seen_after_, std::nullopt);
    if (seen && !procedures_.knows(change)) accepted_ = change;
    if (!seen) {
      HF_CHECK(session_->make_ready());
      const Query query = statements_.reads_back(change);
      HF_TRY(const Rows rows, session_->run(query.sql, query.parameters));
      seen = rows.count() == 1 && rows.is_true(0);
    }
    return Json{{"as_written", *seen}, {"version", std::to_string(change.expected_version + 1)}};
  }

 private:
  // Read once for a delivery.
  Result<RowChange> change_of(const Command& command, const std::string& payload) {
    if (!read_ || read_->payload != payload || read_->precondition != command.precondition) {
      HF_TRY(RowChange change, read_row_change(command, payload, target_));
      read_ = Read{payload, command.precondition, std::move(change)};
    }
    return read_->change;
  }
  // Nothing where there is anything to say of the command: it is said under locks, in its turn.
  std::unique_ptr<Transaction> watching(const Asked& asked) {
    seen_after_.reset();
    if (!asked.change || !procedures_.knows(*asked.change) || !session_->make_ready().ok()) return nullptr;
    postgres::Change change{asked.resource, asked.operation_id, *asked.change};
    auto judged = procedures_.read(change);
    if (!judged.ok()) return nullptr;
    return std::make_unique<postgres::WatchedTransaction>(*session_, procedures_, std::move(change), std::move(*judged),
                                                          seen_after_);
  }
  Result<bool> has_its_tables() {
    const Query query = statements_.tables_exist();
    HF_TRY(const Rows rows, session_->run(query.sql, query.parameters));
    return rows.count() == 1 && rows.is_true(0);
  }
  Result<std::unique_ptr<Transaction>> begun(Asked asked) {
    seen_after_.reset();
    procedures_.forget_rows();
    HF_CHECK(session_->make_ready());
    auto transaction = std::make_unique<PostgresTransaction>(*session_, target_, statements_, seen_after_);
    HF_CHECK(transaction->begin(std::move(asked)));
    return std::unique_ptr<Transaction>(std::move(transaction));
  }
  std::unique_ptr<Session> session_;
  RowTarget target_;
  Statements statements_;
  postgres::Procedures procedures_;
  struct Read {
    std::string payload;
    std::optional<std::string> precondition;
    RowChange change;
  };
  std::optional<Read> read_;
  std::optional<bool> seen_after_;
  std::optional<RowChange> accepted_;  // under locks, and without procedures that could have done it
};

}  // namespace

Result<std::unique_ptr<Receiver>> open_postgres_receiver(const Json& config) {
  HF_TRY(RowTarget target, row_target_from_json(config));
  const std::string connection = text_member(config, "connection");
  if (connection.empty()) return Refusal(Code::usage, "a PostgreSQL receiver needs a connection");
  HF_TRY(auto session, Session::open(connection));
  auto receiver = std::make_unique<PostgresReceiver>(std::move(session), std::move(target));
  HF_CHECK(receiver->prepare());
  return std::unique_ptr<Receiver>(std::move(receiver));
}

}  // namespace holdfast::receivers
