// FileAnchor: an anchor that is one file on another volume, {"protocol":"holdfast.anchor.1","high_water":"N",…}.
#pragma once
#include <memory>
#include <string>

#include "authority/anchor.h"
#include "os/control_folder.h"

namespace holdfast::authority {

class FileAnchor : public Anchor {
 public:
  // `path` is absolute; its folder is asked for when the anchor is.
  static Result<std::unique_ptr<FileAnchor>> open(const std::string& path, const std::string& workspace_id);
  Result<Generation> read() override;
  Result<void> raise(Generation high_water) override;
  Result<void> establish(Generation high_water) override;
  // The file of a workspace that has no anchor yet; an existing file of another workspace is left as it is.
  Result<void> create(Generation high_water);

 private:
  Result<void> reach();
  Result<void> put(Generation high_water);
  std::unique_ptr<os::ControlFolder> folder_;
  std::string path_;
  std::string folder_path_;
  std::string leaf_;
  std::string workspace_id_;
};

}  // namespace holdfast::authority
