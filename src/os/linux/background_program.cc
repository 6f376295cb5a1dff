#include "os/background_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include "os/file.h"
#include "os/linux/detached_spawn.h"

extern char** environ;

namespace holdfast::os {

Result<std::int64_t> start_in_background(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  DetachedSpawn spawn;
  ::posix_spawn_file_actions_addclosefrom_np(spawn.actions(), 3);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, words.front(), spawn.actions(), spawn.attributes(), words.data(), environ);
  if (error != 0) return os_refusal(Code::os_failed, "start " + arguments.front(), error);
  return pid;
}

}  // namespace holdfast::os
