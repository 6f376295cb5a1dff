#include "scope/resolve.h"

#include "scope/scratch_workspace.h"

namespace holdfast {
namespace {

using Resolve = ScratchWorkspace;
using NameScope = ScratchWorkspace;

TEST_F(Resolve, MakesOneScopeOfEverySpelling) {
  put(path("src/a.txt"));
  const std::string absolute = path("src/a.txt").string();
  for (const std::string& text :
       {std::string("src/a.txt"), std::string("./src//./a.txt"), std::string("project:/src/a.txt"),
        std::string("file://project:/src/a.txt"), std::string("file://src/a.txt"), absolute, "file://" + absolute,
        "//" + absolute, root_.string() + "/./src/a.txt", std::string("src/a.txt/")}) {
    EXPECT_EQ(resolve(text), "project:/src/a.txt") << text;
    EXPECT_EQ(name(text), "project:/src/a.txt") << text;
  }
  for (const std::string& text : {std::string("project:/"), std::string("file://project:/"), std::string("."),
                                  root_.string(), root_.string() + "/", "file://" + root_.string()}) {
    EXPECT_EQ(resolve(text), "project:/") << text;
  }
}

TEST_F(Resolve, TakesARelativePathFromTheCurrentFolderAndAProjectPathFromTheRoot) {
  put(path("deep/down/x"));
  const std::string down = path("deep/down").string();
  EXPECT_EQ(resolve_from(down, "x"), "project:/deep/down/x");
  EXPECT_EQ(resolve_from(down, "new/y"), "project:/deep/down/new/y");
  EXPECT_EQ(resolve_from(down, "."), "project:/deep/down");
  EXPECT_EQ(resolve_from(down, "project:/x"), "project:/x");
  EXPECT_EQ(resolve_from(down, "session://x"), "session://x");
}

TEST_F(Resolve, ReadsACurrentFolderThatIsSpelledInAnotherWay) {
  folder("deep/down");
  link("deep", "short");
  std::filesystem::create_symlink(root_, base_ / "other");
  for (const std::filesystem::path& current :
       {path("deep/../deep/./down/"), path("short/down"), base_ / "other/short/down", outside_ / "../foo/deep/down"}) {
    EXPECT_EQ(resolve_from(current.string(), "x"), "project:/deep/down/x") << current;
    EXPECT_EQ(answer(name_scope(workspace_, "x", current.string())), "project:/deep/down/x") << current;
  }
}

TEST_F(Resolve, RefusesARelativePathFromAFolderOutside) {
  for (const std::string& current : {outside_.string(), std::string("/"), std::string(), std::string("relative"),
                                     (base_ / "absent").string(), root_.string() + std::string("\0x", 2)}) {
    EXPECT_NE(resolve_from(current, "x"), "project:/x") << current;
    EXPECT_NE(resolve_from(current, "x").find("scope_"), std::string::npos) << current;
  }
  EXPECT_EQ(resolve_from(outside_.string(), "x"), "scope_outside_workspace");
  EXPECT_EQ(resolve_from("", "x"), "scope_outside_workspace");
}

TEST_F(Resolve, RecognisesTheWorkspaceThroughALinkToIt) {
  put(path("deep/x"));
  std::filesystem::create_symlink(root_, base_ / "other");
  std::filesystem::create_symlink(root_ / "deep", base_ / "middle");
  EXPECT_EQ(resolve((base_ / "other/deep/x").string()), "project:/deep/x");
  EXPECT_EQ(resolve((base_ / "other/new/x").string()), "project:/new/x");
  EXPECT_EQ(resolve((base_ / "middle/x").string()), "project:/deep/x");
  EXPECT_EQ(name((base_ / "middle/x").string()), "project:/deep/x");
  EXPECT_EQ(resolve((base_ / "other/deep/x:y").string()), "scope_colon");
}

TEST_F(Resolve, IsFreeOfTheRulesAboveTheRoot) {
  const std::filesystem::path odd = base_ / "a:b" / "dir.";
  std::filesystem::create_directories(odd);
  std::filesystem::rename(root_, odd / "ws");
  EXPECT_EQ(resolve((odd / "ws/x").string()), "project:/x");
  EXPECT_EQ(resolve((odd / "ws/x:y").string()), "scope_colon");
  EXPECT_EQ(resolve((odd / "ws/x.").string()), "scope_trailing_dot_or_space");
}

TEST_F(Resolve, RefusesASiblingWhoseNameBeginsLikeTheRoot) {  // M14
  put(outside_ / "x");
  EXPECT_EQ(resolve((outside_ / "x").string()), "scope_outside_workspace");
  EXPECT_EQ(resolve(root_.string() + "bar/x"), "scope_outside_workspace");
  EXPECT_EQ(resolve(root_.string() + "-sibling/x"), "scope_outside_workspace");
  EXPECT_EQ(resolve(root_.string() + "/../foobar/x"), "scope_parent_traversal");
  EXPECT_EQ(resolve(root_.string() + "/./x"), "project:/x");
  EXPECT_EQ(resolve("/etc/hostname"), "scope_outside_workspace");
  EXPECT_EQ(resolve("file:///etc/hostname"), "scope_outside_workspace");
  EXPECT_EQ(resolve("/"), "scope_outside_workspace");
  EXPECT_EQ(name((outside_ / "x").string()), "scope_outside_workspace");
}

TEST_F(Resolve, FollowsLinksInsideToWhatTheyName) {
  put(path("real/a.txt"));
  folder("other");
  link("real/a.txt", "alias");
  link(path("real"), "folder");
  link("../real/./a.txt", "other/up");
  link("../../foo/real", "other/around");  // out and in again
  link("folder/a.txt", "twice");
  link(root_, "whole");
  EXPECT_EQ(resolve("alias"), "project:/real/a.txt");
  EXPECT_EQ(resolve("folder/a.txt"), "project:/real/a.txt");
  EXPECT_EQ(resolve("other/up"), "project:/real/a.txt");
  EXPECT_EQ(resolve("other/around/a.txt"), "project:/real/a.txt");
  EXPECT_EQ(resolve("twice"), "project:/real/a.txt");
  EXPECT_EQ(resolve("whole/whole/real"), "project:/real");
}

TEST_F(Resolve, KeepsTheSuffixOfATargetThatDoesNotExist) {
  folder("real");
  link("real", "link");
  EXPECT_EQ(resolve("real/new/deep.txt"), "project:/real/new/deep.txt");
  EXPECT_EQ(resolve("link/new/deep.txt"), "project:/real/new/deep.txt");
  EXPECT_EQ(resolve("new"), "project:/new");
  EXPECT_EQ(resolve(path("link/new/deep.txt").string()), "project:/real/new/deep.txt");
}

TEST_F(Resolve, RefusesALinkThatLeaves) {  // M12, M13
  put(outside_ / "x");
  link(outside_ / "x", "file-link");
  link(outside_, "folder-link");
  link("../foobar", "relative-link");
  link(outside_ / "absent", "absent-link");
  link("..", "up");
  link("/", "top");
  for (const char* text : {"file-link", "folder-link/x", "folder-link/new", "folder-link", "relative-link/x",
                           "absent-link", "up", "up/foobar/x", "top/etc/hostname"}) {
    EXPECT_EQ(resolve(text), "scope_outside_workspace") << text;
  }
  EXPECT_EQ(resolve("up/foo/a"), "project:/a");
  EXPECT_FALSE(std::filesystem::exists(outside_ / "absent"));
}

TEST_F(Resolve, RefusesADanglingOrLoopingLinkAndAFileUsedAsAFolder) {
  link("absent", "dangling");
  link("absent/deeper", "dangling-deep");
  link("loop", "loop");
  link("pong", "ping");
  link("ping", "pong");
  put(path("file"));
  link("file", "to-file");
  for (const char* text :
       {"dangling", "dangling/x", "dangling-deep", "loop", "loop/x", "ping", "file/x", "file/x/y", "to-file/x"}) {
    EXPECT_EQ(resolve(text), "scope_unresolvable") << text;
  }
}

TEST_F(Resolve, RefusesTheControlFolderByAnyName) {
  put(path(".squad/generations.json"));
  link(".squad", "innocent");
  link(".squad/generations.json", "harmless");
  folder("deep");
  link(path(".squad"), "deep/absolute");
  for (const std::string& text :
       {std::string(".squad"), std::string(".squad/generations.json"), std::string(".squad/new/x"),
        std::string("innocent"), std::string("innocent/x"), std::string("harmless"), std::string("deep/absolute/x"),
        path(".squad/x").string(), std::string("file://project:/.squad/x"), std::string("./.squad")}) {
    EXPECT_EQ(resolve(text), "scope_reserved") << text;
  }
  EXPECT_EQ(resolve_from(path(".squad").string(), "x"), "scope_reserved");
  EXPECT_EQ(name(".squad/x"), "scope_reserved");
  std::filesystem::rename(path(".squad"), path("renamed"));  // under another name it is the same object
  EXPECT_EQ(resolve("renamed/x"), "scope_reserved");
}

TEST_F(Resolve, RefusesWhatALinkLeadsToByTheSameRules) {
  put(path("a:b"));
  put(path("dir./x"));
  put(path("bad-\xff"));
  link("a:b", "colon");
  link("dir.", "dot");
  link("bad-\xff", "bytes");
  EXPECT_EQ(resolve("colon"), "scope_colon");
  EXPECT_EQ(resolve("dot/x"), "scope_trailing_dot_or_space");
  EXPECT_EQ(resolve("bytes"), "scope_not_utf8");
}

TEST_F(Resolve, KeepsPercentSignsAndCaseAndComposition) {  // M18, B85 to B88, M19
  put(path("My%20P"));
  EXPECT_EQ(resolve("My%20P"), "project:/My%20P");
  EXPECT_EQ(resolve("%2e%2e/x"), "project:/%2e%2e/x");
  EXPECT_EQ(resolve("%252e%252e"), "project:/%252e%252e");
  EXPECT_EQ(resolve("file://project:/c%3A/x"), "project:/c%3A/x");
  EXPECT_EQ(resolve("Dir/A.txt"), "project:/Dir/A.txt");
  EXPECT_EQ(resolve("r\u00e9sum\u00e9-\u6587.txt"), "project:/r\u00e9sum\u00e9-\u6587.txt");
  EXPECT_NE(resolve("\u00e9"), resolve("e\u0301"));
}

TEST_F(Resolve, AnswersVeryLongPaths) {
  const std::string name250(250, 'd');
  std::string longest = name250;
  for (int count = 1; count < 400; ++count) longest += "/" + name250;
  EXPECT_EQ(resolve(name250), "project:/" + name250);
  EXPECT_EQ(resolve(longest), "project:/" + longest);
  EXPECT_EQ(resolve(std::string(300, 'd')), "scope_unresolvable");
  EXPECT_EQ(resolve("/" + longest), "scope_outside_workspace");
  std::string segments;
  for (int count = 0; count < 50'000; ++count) segments += "a/";
  EXPECT_EQ(resolve(segments).size(), segments.size() - 1 + std::string("project:/").size());
}

TEST_F(NameScope, NamesAFolderThatIsALinkByItsOwnName) {
  put(path("real/a.txt"));
  link("real", "folder");
  EXPECT_EQ(resolve("folder/a.txt"), "project:/real/a.txt");
  EXPECT_EQ(name("folder/a.txt"), "project:/folder/a.txt");
  EXPECT_EQ(name(path("folder/a.txt").string()), "project:/folder/a.txt");
  link("absent", "dangling");
  EXPECT_EQ(name("dangling/x"), "project:/dangling/x");
  EXPECT_EQ(name("a/../b"), "scope_parent_traversal");
  EXPECT_EQ(name("session://a/b/"), "session://a/b");
}

}  // namespace
}  // namespace holdfast
