// ControlSteps: the single acts that ControlFolder's promises are made of. One implementation asks the kernel
// (os/linux), one is in memory (os/fake), so that the crash tests run the very sequence that production runs.
//
// Paths are relative to .squad and already checked (no empty, "." or ".." segment); "" is .squad itself.
// Errors are errno numbers, 0 for success; ELOOP wherever a link would be followed. Every act may be called from
// several threads.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"
#include "os/control_folder.h"
#include "os/file.h"

namespace holdfast::os {

class ControlSteps {
 public:
  // A regular file, open for writing at its end.
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual std::uint64_t size() const = 0;
    virtual int write(std::string_view bytes) = 0;  // all of them, or an error after some
    virtual int flush() = 0;
    virtual int truncate(std::uint64_t length) = 0;
  };
  struct Opened {
    std::unique_ptr<Writer> writer;
    int error = 0;
  };
  struct Entry {
    std::string name;
    Kind kind = Kind::other;
  };

  virtual ~ControlSteps() = default;

  virtual int kind_of(const std::string& path, Kind& kind) = 0;  // ENOENT where there is none; links not followed
  // ENOENT; EISDIR for what is no regular file.
  virtual int read(const std::string& path, std::uint64_t offset, std::string& bytes) = 0;
  virtual int size(const std::string& path, std::uint64_t& bytes) = 0;
  virtual int entries(const std::string& folder, std::vector<Entry>& found) = 0;

  virtual Opened create(const std::string& path) = 0;  // EEXIST where anything bears the name
  virtual Opened open(const std::string& path) = 0;
  virtual int make_folder(const std::string& path) = 0;  // one level; EEXIST
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int link(const std::string& from, const std::string& to) = 0;  // EEXIST where anything bears the new name
  virtual int unlink(const std::string& path) = 0;
  virtual int flush_folder(const std::string& folder) = 0;
  // Each of them flushed; the waits may overlap. The first error.
  virtual int flush_together(const std::vector<Writer*>& writers) {
    int first = 0;
    for (Writer* writer : writers) {
      if (const int error = writer->flush(); first == 0) first = error;
    }
    return first;
  }
};

// ControlFolder's promises over these acts.
std::unique_ptr<ControlFolder> control_folder_over(std::shared_ptr<ControlSteps> steps);

// The folder part of a path ("" for a leaf).
std::string parent_of(const std::string& path);

}  // namespace holdfast::os
