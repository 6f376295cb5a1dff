#include "receivers/command/command_receiver.h"

#include "base/json.h"
#include "receivers/sqlite/tables.h"

namespace holdfast::receivers {
namespace {

using sqlite::Database;
using sqlite::Statement;

class CommandTransaction : public sqlite::TablesTransaction {
 public:
  using TablesTransaction::TablesTransaction;
  // The intent: the program is not part of the transaction, and so its outcome is not known yet.
  Result<Json> apply(const Command& command, const std::string&, const Capture&) override {
    return started_outcome(command);
  }
};

class CommandReceiver : public Receiver {
 public:
  explicit CommandReceiver(Database database) : database_(std::move(database)), statements_(database_.get()) {}
  std::string kind() const override { return "command"; }

  Result<std::unique_ptr<Transaction>> begin() override {
    HF_CHECK(sqlite::check_not_moved(database_.get()));
    HF_CHECK(statements_.run("BEGIN IMMEDIATE"));
    return std::unique_ptr<Transaction>(new CommandTransaction(database_.get(), statements_));
  }

  Result<Json> observe(const Command&, const std::string&) override { return Json{{"state", "started"}}; }

  Result<void> settle(const std::string& operation_id, const std::optional<Json>& outcome) override {
    HF_TRY(const auto transaction, begin());
    HF_TRY(const auto before, transaction->applied(operation_id));
    // Said again after a crash.
    if (before && outcome && before->outcome == *outcome) return {};
    if (!before || !is_started(before->outcome)) {
      return Refusal(Code::not_found, "not_found: " + printable(operation_id) + " is no command that waits for its end",
                     Json{{"operation_id", printable(operation_id)}});
    }
    {
      {  // closed before the commit
        HF_TRY(Statement put, statements_.get(outcome ? "UPDATE holdfast_operations SET outcome=? WHERE operation_id=?"
                                                      : "DELETE FROM holdfast_operations WHERE ?='' AND "
                                                        "operation_id=?"));
        put.bind(1, outcome ? dump_canonical(*outcome) : std::string());
        put.bind(2, operation_id);
        HF_CHECK(put.step());
      }
    }
    return transaction->commit();
  }

 private:
  Database database_;
  sqlite::PreparedStatements statements_;
};

}  // namespace

Result<std::unique_ptr<Receiver>> open_command_receiver(const Json& config) {
  HF_TRY(Database database, sqlite::open_database(text_member(config, "state"), sqlite::Missing::is_made));
  return std::unique_ptr<Receiver>(new CommandReceiver(std::move(database)));
}

}  // namespace holdfast::receivers
