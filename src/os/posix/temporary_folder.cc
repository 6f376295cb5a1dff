#include "os/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>

#include "os/file.h"

namespace holdfast::os {

Result<std::string> make_temporary_folder(const std::string& parent, const std::string& prefix) {
  std::string path = parent + "/" + prefix + "-XXXXXX";
  if (::mkdtemp(path.data()) != nullptr) return path;
  return os_refusal(Code::state_persist_failed, "mkdtemp", errno).with("parent", parent);
}

}  // namespace holdfast::os
