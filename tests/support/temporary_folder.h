// A folder of a test's own (0700), removed with everything in it at the end of the test.
#pragma once
#include <string>

#include "os/handle.h"

namespace holdfast::support {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& relative) const { return path_ + "/" + relative; }
  os::Handle open(const std::string& relative = "") const;  // the folder itself or one in it, for reading

  void make_folder(const std::string& relative) const;                      // 0700, and its parents
  void write(const std::string& relative, const std::string& bytes) const;  // replaces the content in place
  std::string read(const std::string& relative) const;                      // "" where it is absent
  bool exists(const std::string& relative) const;                           // links count by themselves
  void link(const std::string& target, const std::string& relative) const;  // a symbolic link

 private:
  std::string path_;
};

}  // namespace holdfast::support
