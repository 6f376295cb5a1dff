#include "os/thread.h"

#include <system_error>
#include <utility>

#include "os/file.h"

namespace holdfast::os {

Result<std::thread> start_thread(std::move_only_function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& failure) {
    return os_refusal(Code::os_failed, "start_thread", failure.code().value());
  }
}

}  // namespace holdfast::os
