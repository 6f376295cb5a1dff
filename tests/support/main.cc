// The main of every test program: a role of support/child.h where --as=NAME asks for one, else the tests. (It takes the
// place of gtest_main, which stands behind this library on the link line.)
#include <gtest/gtest.h>

#include <csignal>

#include "support/child.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (const int status = holdfast::support::run_role(argc, argv); status >= 0) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
