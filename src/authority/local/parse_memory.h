// ParseMemory: what was parsed of a control file, used again only while its bytes are the very same.
//
// It spares the parsing, never the reading: a file that anybody changed is parsed anew, so that nothing is decided on
// what is no longer there. It may be forgotten at any time. Threads: safe from several.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "holdfast/result.h"

namespace holdfast::authority {

template <class Parsed>
class ParseMemory {
 public:
  // parse(bytes) gives a Result<Parsed>; a refusal is not remembered.
  template <class Parse>
  Result<Parsed> of(const std::string& path, const std::string& bytes, const Parse& parse) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = entries_.find(path);
      if (found != entries_.end() && found->second.bytes == bytes) return found->second.parsed;
    }
    HF_TRY(Parsed parsed, parse(bytes));
    const std::scoped_lock lock(mutex_);
    if (entries_.size() >= kEntriesMax) entries_.clear();
    entries_.insert_or_assign(path, Entry{bytes, parsed});
    return parsed;
  }

  void forget(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    entries_.erase(path);
  }

 private:
  struct Entry {
    std::string bytes;
    Parsed parsed;
  };
  static constexpr std::size_t kEntriesMax = 4096;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace holdfast::authority
