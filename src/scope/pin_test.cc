#include "scope/resolve.h"

#include "scope/scratch_workspace.h"

namespace holdfast {
namespace {

using PinPlace = ScratchWorkspace;

std::string code_of(const Result<PinnedPlace>& place) {
  return place ? "pinned" : std::string(place.refusal().code_name());
}

TEST_F(PinPlace, GivesTheParentTheLeafAndTheObject) {
  put(path("deep/down/a.txt"), "seven..");
  Result<PinnedPlace> place = pin_place(workspace_, scope_of("deep/down/a.txt"));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->leaf, "a.txt");
  EXPECT_EQ(place->parent_facts.kind, os::Kind::folder);
  EXPECT_TRUE(os::flush(place->parent).ok());
  ASSERT_TRUE(place->object.has_value());
  EXPECT_EQ(os::read_whole(*place->object, 100).value(), "seven..");
  EXPECT_EQ(place->facts->byte_count, 7U);
  EXPECT_FALSE(place->is_mount_point);
}

TEST_F(PinPlace, GivesNoObjectWhereNothingBearsTheLeaf) {
  folder("deep");
  Result<PinnedPlace> place = pin_place(workspace_, scope_of("deep/new"));
  ASSERT_TRUE(place.ok());
  EXPECT_TRUE(place->parent);
  EXPECT_FALSE(place->object.has_value());
  EXPECT_FALSE(place->facts.has_value());
}

TEST_F(PinPlace, GivesTheRootForTheWholeWorkspace) {
  Result<PinnedPlace> place = pin_place(workspace_, scope_of(""));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->leaf, "");
  EXPECT_EQ(place->parent_facts.identity, os::facts_of_open(workspace_.root)->identity);
  EXPECT_EQ(place->facts->identity, place->parent_facts.identity);
  EXPECT_TRUE(place->object.has_value());
}

TEST_F(PinPlace, RefusesAFolderThatBecameALinkEvenOneThatLeadsInside) {  // B93
  put(path("real/deep/a.txt"));
  put(outside_ / "deep/a.txt");
  link("real", "inside");
  link(outside_, "leaving");
  link("absent", "dangling");
  for (const char* relative : {"inside/a.txt", "inside/deep/a.txt", "leaving/deep/a.txt", "leaving/x", "dangling/x"}) {
    EXPECT_EQ(code_of(pin_place(workspace_, scope_of(relative))), "destination_parent_redirected") << relative;
    EXPECT_EQ(code_of(pin_place(workspace_, scope_of(relative), true)), "destination_parent_redirected") << relative;
  }
}

TEST_F(PinPlace, RefusesAMissingParentUnlessItMayBeMissing) {
  const Result<PinnedPlace> refused = pin_place(workspace_, scope_of("new/deep/a.txt"));
  EXPECT_EQ(code_of(refused), "destination_parent_unverifiable");
  const Result<PinnedPlace> allowed = pin_place(workspace_, scope_of("new/deep/a.txt"), true);
  ASSERT_TRUE(allowed.ok());
  EXPECT_FALSE(allowed->parent);
  EXPECT_EQ(allowed->leaf, "a.txt");
  put(path("file"));
  EXPECT_EQ(code_of(pin_place(workspace_, scope_of("file/x"), true)), "destination_parent_unverifiable");
}

TEST_F(PinPlace, ShowsALeafThatIsALinkAndNeverOpensIt) {
  put(outside_ / "x");
  link(outside_ / "x", "leaf");
  Result<PinnedPlace> place = pin_place(workspace_, scope_of("leaf"));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->facts->kind, os::Kind::link);
  EXPECT_FALSE(place->object.has_value());
}

TEST_F(PinPlace, RefusesAScopeThatNoParserGave) {
  put(outside_ / "x");
  for (const char* relative : {"../foobar/x", "a/../../foobar/x", ".squad/x", "a//b", "./a", "/etc/hostname"}) {
    const Result<PinnedPlace> place = pin_place(workspace_, scope_of(relative));
    EXPECT_FALSE(place.ok()) << relative;
  }
  EXPECT_FALSE(pin_place(workspace_, Scope{Namespace::session, "a"}).ok());
  EXPECT_FALSE(pin_place(workspace_, Scope{Namespace::file, "/etc/hostname"}).ok());
}

TEST_F(PinPlace, RefusesTheControlFolderUnderAnotherName) {
  put(path(".squad/x"));
  std::filesystem::rename(path(".squad"), path("renamed"));
  EXPECT_EQ(code_of(pin_place(workspace_, scope_of("renamed"))), "scope_reserved");
  EXPECT_EQ(code_of(pin_place(workspace_, scope_of("renamed/x"))), "scope_reserved");
}

TEST_F(PinPlace, WalksPathsLongerThanTheSystemTakesAtOnce) {
  const std::string step(200, 'd');
  std::string relative;
  std::filesystem::path place = root_;
  // Made from the inside out, since no single path of the whole can be passed.
  for (int count = 0; count < 30; ++count) {
    std::filesystem::create_directory(root_ / "next");
    if (count > 0) std::filesystem::rename(root_ / step, root_ / "next" / step);
    std::filesystem::rename(root_ / "next", root_ / step);
    relative += step + "/";
  }
  EXPECT_GT(relative.size(), 4096U);
  EXPECT_EQ(code_of(pin_place(workspace_, scope_of(relative + "a"))), "pinned");
  EXPECT_EQ(resolve(relative + "a"), "project:/" + relative + "a");
  for (int count = 29; count > 0; --count) {  // flat again, so that it can be removed
    std::filesystem::rename(root_ / step, root_ / "next");
    std::filesystem::rename(root_ / "next" / step, root_ / step);
    std::filesystem::remove(root_ / "next");
  }
}

class OpenedFileScope : public ScratchWorkspace {
 protected:
  os::Handle opened(const std::string& relative) const {
    Result<PinnedPlace> place = pin_place(workspace_, scope_of(relative));
    EXPECT_TRUE(place.ok() && place->object);
    return std::move(*place->object);
  }
  std::string scope_of_open(const os::Handle& object) const { return answer(opened_file_scope(workspace_, object)); }
};

TEST_F(OpenedFileScope, ComesFromTheObjectWhateverItWasOpenedAs) {
  put(path("deep/a.txt"));
  const os::Handle file = opened("deep/a.txt");
  EXPECT_EQ(scope_of_open(file), "project:/deep/a.txt");
  std::filesystem::rename(path("deep"), path("moved"));
  EXPECT_EQ(scope_of_open(file), "project:/moved/a.txt");
  EXPECT_EQ(scope_of_open(opened("moved")), "project:/moved");
  EXPECT_EQ(scope_of_open(workspace_.root), "project:/");
}

TEST_F(OpenedFileScope, RefusesAnObjectThatIsGoneHiddenOrOutside) {
  put(path("a.txt"));
  put(path("b.txt"));
  put(path(".squad/x"));
  const os::Handle gone = opened("a.txt");
  std::filesystem::remove(path("a.txt"));
  EXPECT_EQ(scope_of_open(gone), "scope_unresolvable");
  put(path("a.txt"));  // another object bears the name now
  EXPECT_EQ(scope_of_open(gone), "scope_unresolvable");
  put(path("a.txt (deleted)"));
  EXPECT_EQ(scope_of_open(gone), "scope_unresolvable");
  const os::Handle away = opened("b.txt");
  std::filesystem::rename(path("b.txt"), outside_ / "b.txt");
  EXPECT_EQ(scope_of_open(away), "scope_outside_workspace");
  EXPECT_EQ(scope_of_open(workspace_.squad), "scope_reserved");
}

TEST_F(OpenedFileScope, BelievesANameThatOnlyLooksDeleted) {
  put(path("a (deleted)"));
  EXPECT_EQ(scope_of_open(opened("a (deleted)")), "project:/a (deleted)");
}

TEST_F(OpenedFileScope, FollowsAWorkspaceThatMoved) {
  put(path("a.txt"));
  const os::Handle file = opened("a.txt");
  std::filesystem::rename(root_, base_ / "elsewhere");
  EXPECT_EQ(scope_of_open(file), "project:/a.txt");
}

}  // namespace
}  // namespace holdfast
