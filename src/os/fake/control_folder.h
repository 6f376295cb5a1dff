// FakeControlFolder: control files in memory that can be lost the way a power cut loses them.
//
// It runs the very sequences of the real one (os/control_folder.cc) over acts in memory, with two images: the volatile
// one, which readers see, and the durable one, which a power cut leaves. A file's flush copies its bytes, a folder's
// flush copies the names in it.
//
// Calling sequence of a crash test: run the act once and read steps(); then for each k from 1 to that number: a fresh
// fake, crash_at(k), run the act (it is refused), power_cut(loss) for every Loss, open the result and check it.
//
// A step is one create, write, flush, rename, link, unlink, truncate, make folder or folder flush. The k-th step of
// crash_at(k) is not done (of a write half the bytes are), and everything after it fails, reads too.
// Threads: safe from several.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/control_folder.h"

namespace holdfast::os {

class FakeControlFolder : public ControlFolder {
 public:
  enum class Loss {
    unflushed_lost,  // only what was flushed is left
    renames_kept,    // every change of a name is left, of the bytes only what was flushed
    torn,            // every change of a name is left, and half of the unflushed bytes
    unflushed_kept,  // everything is left: the process died, the machine did not
  };
  static constexpr std::array kEveryLoss = {Loss::unflushed_lost, Loss::renames_kept, Loss::torn, Loss::unflushed_kept};

  FakeControlFolder();
  ~FakeControlFolder() override;

  int steps() const;                  // done or tried so far
  int files_read() const;             // so far, each as often as it was
  void crash_at(int step);            // counted from now on: 1 is the next step
  void fail_at(int step, int error);  // that one step fails with this errno; counted from now on
  bool crashed() const;
  std::unique_ptr<FakeControlFolder> power_cut(Loss loss) const;

  // What a test puts there past every promise: durable bytes at a path (and its folders), a link.
  void plant(const std::string& path, std::string_view bytes);
  void plant_link(const std::string& path);

  Result<std::optional<std::string>> read(const std::string& path) override;
  Result<std::string> read_from(const std::string& path, std::uint64_t offset) override;
  Result<std::optional<std::uint64_t>> size(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Result<void> publish(const std::string& path, std::string_view bytes, NameFlush flush = NameFlush::now) override;
  Result<void> publish_under_two_names(const std::string& path, const std::string& second,
                                       std::string_view bytes) override;
  Result<void> stage(const std::string& path, std::string_view bytes) override;
  Result<void> stage_together(const std::vector<Staged>& files) override;
  Result<void> rename(const std::string& from, const std::string& to, NameFlush flush = NameFlush::now) override;
  Result<void> remove(const std::string& path, NameFlush flush = NameFlush::now) override;
  Result<void> append(const std::string& path, std::string_view bytes) override;
  Result<void> append_and_stage(const std::string& path, std::string_view bytes,
                                const std::vector<Staged>& files) override;
  Result<void> truncate(const std::string& path, std::uint64_t length) override;
  Result<void> make_folder(const std::string& path) override;

 private:
  struct Steps;
  std::shared_ptr<Steps> steps_;
  std::unique_ptr<ControlFolder> folder_;
};

}  // namespace holdfast::os
