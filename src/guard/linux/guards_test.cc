#include <gtest/gtest.h>
#include <signal.h>

#include "guard/guard.h"
#include "support/no_new_threads.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::guard {
namespace {

using support::refused_with;

TEST(Guards, AreRefusedWhereNoThreadCouldAnswerForThemAndTheCallersSignalsAreAsBefore) {
  const support::TemporaryFolder place;
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const support::NoNewThreads none;
    EXPECT_TRUE(refused_with(make_guards(place.open()), Code::os_failed));
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(::sigismember(&before, SIGIO), ::sigismember(&after, SIGIO));
  EXPECT_TRUE(make_guards(place.open()).ok());
}

}  // namespace
}  // namespace holdfast::guard
