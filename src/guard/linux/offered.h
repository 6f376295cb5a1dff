// A twin on its way to the name, offered to the guard of another process beside ours, where there is one: it has its
// own lease on the twin before anybody can find it, and is told at the end what became of it. A follower that fails is
// given up: whoever hands over ends it, and the writer is diverted without it.
#pragma once
#include "guard/linux/guarded_file.h"

namespace holdfast::guard {

class GuardedFile::Offered {
 public:
  Offered(GuardedFile& file, const os::Handle& twin, const std::string& temporary_name) : file_(file) {
    if (!file_.follower_) return;
    const auto held = file_.follower_->offer(twin, temporary_name, true);
    open_ = held.ok() && *held;
    if (!open_) file_.follower_.reset();
  }
  // Last of all, after the lease of the old object was dropped: the follower drops its own then.
  ~Offered() {
    if (!open_ || !file_.follower_) return;
    file_.follower_->settle(taken_);
    if (taken_) file_.follower_has_object_ = true;
  }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;
  void taken() { taken_ = true; }

 private:
  GuardedFile& file_;
  bool open_ = false;
  bool taken_ = false;
};

}  // namespace holdfast::guard
