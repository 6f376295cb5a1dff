// For tests: a workspace in a folder of its own, which goes with it.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "os/workspace_folder.h"
#include "scope/resolve.h"

namespace holdfast {

class ScratchWorkspace : public testing::Test {
 protected:
  ScratchWorkspace() {
    std::random_device random;
    base_ = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
            ("holdfast-scope-" + std::to_string(random()) + std::to_string(random()));
    root_ = base_ / "foo";
    outside_ = base_ / "foobar";  // the root is its prefix (M14)
    std::filesystem::create_directories(root_);
    std::filesystem::create_directories(outside_);
    EXPECT_TRUE(os::make_squad(root_.string()).ok());
    open();
  }
  ~ScratchWorkspace() override {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }

  void open() {
    Result<os::WorkspaceFolder> workspace = os::open_workspace(root_.string());
    ASSERT_TRUE(workspace.ok()) << workspace.refusal().message();
    workspace_ = std::move(*workspace);
  }

  std::filesystem::path path(const std::string& relative) const { return root_ / relative; }
  void put(const std::filesystem::path& place, const std::string& bytes = "x") const {
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place, std::ios::binary) << bytes;
  }
  void folder(const std::string& relative) const { std::filesystem::create_directories(path(relative)); }
  void link(const std::filesystem::path& target, const std::string& relative) const {
    std::filesystem::create_symlink(target, path(relative));
  }

  // "project:/…", or the code of the refusal.
  static std::string answer(const Result<Scope>& scope) {
    return scope ? scope->display() : std::string(scope.refusal().code_name());
  }
  std::string resolve(std::string_view text) const { return resolve_from(root_.string(), text); }
  std::string resolve_from(const std::string& current, std::string_view text) const {
    return answer(resolve_scope(workspace_, text, current));
  }
  std::string name(std::string_view text) const { return answer(name_scope(workspace_, text, root_.string())); }

  static Scope scope_of(const std::string& relative) { return Scope{Namespace::file, "project:/" + relative}; }

  std::filesystem::path base_;
  std::filesystem::path root_;
  std::filesystem::path outside_;
  os::WorkspaceFolder workspace_;
};

}  // namespace holdfast
