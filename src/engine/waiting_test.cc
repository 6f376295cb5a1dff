#include "engine/waiting.h"

#include <gtest/gtest.h>

namespace holdfast::engine {
namespace {

Scope scope(const std::string& name) { return Scope{Namespace::file, "project:/" + name}; }

// Takes the first try that everybody has.
WaitQueue::Place enter(WaitQueue& queue, const std::vector<std::string>& names) {
  std::vector<Scope> scopes;
  for (const std::string& name : names) scopes.push_back(scope(name));
  auto place = queue.enter(scopes);
  EXPECT_TRUE(queue.wait(place, 0));
  return place;
}

TEST(WaitQueue, B124WakesOneOfFiveHundredForEachEndInTheirOrder) {
  WaitQueue queue;
  std::vector<WaitQueue::Place> places;
  for (int count = 0; count < 500; ++count) places.push_back(enter(queue, {"a"}));
  for (std::size_t turn = 0; turn < places.size(); ++turn) {
    queue.freed(scope("a"));
    for (std::size_t at = turn; at < places.size(); ++at) EXPECT_EQ(places[at]->woken, at == turn) << turn << " " << at;
    EXPECT_TRUE(queue.wait(places[turn], 0));
    queue.leave(places[turn], true);
  }
}

TEST(WaitQueue, PassesTheTurnOnWhereAWaiterLeavesWithoutAGrant) {
  WaitQueue queue;
  const auto first = enter(queue, {"a"});
  const auto second = enter(queue, {"a"});
  queue.freed(scope("a"));
  EXPECT_FALSE(second->woken);
  queue.leave(first, false);
  EXPECT_TRUE(second->woken);
}

TEST(WaitQueue, ALaterWaiterNeverOvertakesOneThatWantsMore) {
  WaitQueue queue;
  const auto pair = enter(queue, {"a", "b"});
  const auto single = enter(queue, {"b"});
  const auto other = enter(queue, {"c"});
  queue.freed(scope("b"));
  EXPECT_TRUE(pair->woken);
  EXPECT_FALSE(single->woken);
  EXPECT_EQ(queue.before(single, single->scopes), 1U);
  EXPECT_EQ(queue.before(other, other->scopes), 0U);
  EXPECT_EQ(queue.before(nullptr, {scope("b")}), 2U);
}

TEST(WaitQueue, AFolderFreesWhatLiesBelowIt) {
  WaitQueue queue;
  const auto below = enter(queue, {"d/f"});
  queue.freed(scope("d"));
  EXPECT_TRUE(below->woken);
}

TEST(WaitQueue, ClosedItKeepsNobody) {
  WaitQueue queue;
  const auto place = enter(queue, {"a"});
  queue.close();
  EXPECT_FALSE(queue.wait(place, 60'000));
  EXPECT_TRUE(queue.is_closed());
}

TEST(WaitQueue, SendsEverybodyBackWhileAnotherImageTakesOverAndKnowsTheirPlacesAgain) {
  WaitQueue queue;
  const auto first = enter(queue, {"a"});
  const auto second = enter(queue, {"a"});
  queue.suspend();
  EXPECT_TRUE(queue.is_suspended());
  EXPECT_FALSE(queue.wait(first, 60'000)) << "at once, not after the limit";
  queue.leave(first, false);
  queue.leave(second, false);
  EXPECT_EQ(queue.count(), 0U);

  WaitQueue next;
  const auto newcomer = enter(next, {"a"});
  EXPECT_EQ(newcomer->number, 1U);
  next.leave(newcomer, false);
  const auto second_again = next.enter({scope("a")}, second->number);
  const auto first_again = next.enter({scope("a")}, first->number);
  const auto behind = next.enter({scope("a")});
  EXPECT_EQ(next.before(first_again, first_again->scopes), 0U);
  EXPECT_EQ(next.before(second_again, second_again->scopes), 1U);
  EXPECT_EQ(next.before(behind, behind->scopes), 2U);
  EXPECT_GT(behind->number, second->number);
}

}  // namespace
}  // namespace holdfast::engine
