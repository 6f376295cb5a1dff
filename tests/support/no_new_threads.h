// While it lives, no thread of this process starts: each would get a stack that no address space holds.
#pragma once
#include <pthread.h>

namespace holdfast::support {

class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_attr_t impossible;
    ::pthread_getattr_default_np(&before_);
    ::pthread_attr_init(&impossible);
    ::pthread_attr_setstacksize(&impossible, 1UL << 47U);
    ::pthread_setattr_default_np(&impossible);
    ::pthread_attr_destroy(&impossible);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;
  ~NoNewThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

}  // namespace holdfast::support
