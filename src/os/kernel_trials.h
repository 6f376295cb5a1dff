// What this kernel and this file system offer, each tried by doing it on an object of the caller's, or read where the
// kernel says it itself. For `holdfast doctor`.
//
// Does not promise: that what is only listed works (`security_modules`, the Landlock version): nothing is loaded.
// Errors: numbers are errno, 0 is success. Threads: safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "os/handle.h"

namespace holdfast::os {

struct KernelFacts {
  std::string system;   // "Linux"
  std::string release;  // "6.18.0"
  std::string machine;  // "x86_64"
  std::uint32_t user = 0;
  bool is_superuser = false;
  std::optional<int> lease_break_seconds;  // none: it could not be read
  std::string security_modules;            // as listed, comma separated; empty: could not be read
  int security_modules_error = 0;
  int landlock_version = 0;  // 0: none, landlock_error says why
  int landlock_error = 0;
};
KernelFacts kernel_facts();

// Exchanges the objects of two names in one step.
int exchange_two_names(const Handle& folder, const std::string& one, const std::string& other);

// Sets or clears the flag that forbids every change of the object, for root as well.
int set_immutable(const Handle& object, bool immutable);

}  // namespace holdfast::os
