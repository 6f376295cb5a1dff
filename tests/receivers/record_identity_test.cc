// What the version of a row tells apart and what it does not, and what becomes of an answer that was lost.
#include <gtest/gtest.h>

#include "support/row_receiver.h"
#include "support/row_worker.h"

namespace holdfast::receivers {
namespace {

using support::RowWorker;

class RecordIdentity : public support::RowReceiverTest {
 protected:
  void recreate(const std::string& at_version) {
    database_->run("DELETE FROM accounts WHERE id=7");
    database_->run("INSERT INTO accounts(id,version,state) VALUES(7," + at_version + ",'new')");
  }
};

// B57: deleted and made again between plan and effect, with the same key and content. Its version is what tells them
// apart: where it goes on (a sequence, a time), the effect is refused with what is there now.
TEST_P(RecordIdentity, ARowThatWasDeletedAndMadeAgainAtAnotherVersionIsNotTheOneThatWasPlannedOn) {
  database_->run("UPDATE accounts SET version=3");
  recreate("4");
  const Delivery hit = sent(command("op-1", 5, "3", paid()).to_json(), paid(), at_mark(5));
  EXPECT_EQ(hit.decision.decision, "record_version_changed");
  EXPECT_EQ(hit.refusal->details().value("current", ""), "4");
  recreate("1");
  EXPECT_EQ(decided(command("op-2", 5, "3", paid()).to_json(), paid(), at_mark(5)), "record_version_changed");
  expect_untouched();
  database_->run("DELETE FROM accounts WHERE id=7");
  EXPECT_EQ(decided(command("op-3", 5, "1", paid()).to_json(), paid(), at_mark(5)), "record_missing");
}

// B57, the limit of it, as docs/formats/receivers.md says: made again at the very version that was planned on, it is
// the same row to a receiver, which knows rows by key and version alone.
TEST_P(RecordIdentity, ARowThatWasMadeAgainAtTheSameVersionCannotBeToldApart) {
  recreate("1");
  EXPECT_EQ(decided(command("op-1", 5, "1", paid()).to_json(), paid(), at_mark(5)), "accepted");
  EXPECT_EQ(version(), "2");
}

// B58: the effect was applied and its answer lost with the process. The same command again is no conflict with itself.
TEST_P(RecordIdentity, AnEffectWhoseAnswerWasLostAnswersWithItsFirstOutcomeAndHappensOnce) {
  const Command asked = command("op-1", 5, "1", paid());
  RowWorker worker(database_->config());
  worker.send(asked, paid(), at_mark(5), "committed");
  ASSERT_TRUE(worker.is_at_point());
  worker.process().kill();
  worker.process().wait();
  const Delivery again = sent(asked.to_json(), paid(), at_mark(5));
  EXPECT_EQ(again.decision.decision, "repeated");
  EXPECT_EQ(again.outcome.value("version", ""), "2");
  EXPECT_EQ(again.outcome.value("version_before", ""), "1");
  EXPECT_EQ(version(), "2");
  EXPECT_EQ(operations(), "1");
  // Another operation on the version that it was planned on is one, with the current version.
  const Delivery other = sent(command("op-2", 5, "1", paid()).to_json(), paid(), at_mark(5));
  EXPECT_EQ(other.decision.decision, "record_version_changed");
  EXPECT_EQ(other.refusal->details().value("current", ""), "2");
}

HOLDFAST_EVERY_ROW_DATABASE(RecordIdentity);

}  // namespace
}  // namespace holdfast::receivers
