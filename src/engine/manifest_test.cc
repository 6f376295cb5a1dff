#include "engine/manifest.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "base/json.h"
#include "support/child.h"
#include "support/refused_with.h"
#include "support/temporary_folder.h"

namespace holdfast::engine {
namespace {

using support::refused_with;
using support::TemporaryFolder;

Result<ContentDigest> plain_digest(const std::string&, const os::Handle& file) { return os::sha256_of_open(file); }

Tree tree_of(const os::Handle& folder, const Tree* before = nullptr) {
  auto tree = read_tree(folder, {}, plain_digest, before);
  EXPECT_TRUE(tree.ok()) << tree.refusal().message();
  return tree.ok() ? *tree : Tree();
}

std::vector<std::string> paths_of(const Manifest& manifest) {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : manifest) paths.push_back(path);
  return paths;
}

std::vector<std::string> differing(const Comparison& comparison) {
  std::vector<std::string> paths;
  for (const Difference& difference : comparison.differences) paths.push_back(difference.path);
  return paths;
}

using Paths = std::vector<std::string>;

// Folders of one name, each in the one before; no path is as long as the chain.
os::Handle make_chain(const TemporaryFolder& place, const char* name, std::size_t depth) {
  os::Handle folder = place.open();
  for (std::size_t at = 0; at < depth; ++at) {
    EXPECT_EQ(0, ::mkdirat(folder.fd(), name, 0700));
    folder = os::Handle(::openat(folder.fd(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return folder;
}

TEST(EscapedNames, ComeBackAsTheyWereAndAreAlwaysUtf8) {
  for (const std::string name : {"plain", "with space", "new\nline", "..a", "\xff", "a\xc3", "\xc3\xa4", "\\", "\\xff",
                                 "\\\\", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a/b\xfe/c", "\xe2\x82", "tail\xe2"}) {
    const std::string text = escape_name(name);
    EXPECT_TRUE(is_valid_utf8(text)) << text;
    EXPECT_EQ(unescape_name(text), name) << text;
  }
  EXPECT_EQ(escape_name("\xc3\xa4 \xff\\"), "\xc3\xa4 \\xff\\\\");
}

TEST(EscapedNames, AreNeverTheSameForTwoNames) {
  EXPECT_NE(escape_name("\xff"), escape_name("\\xff"));
  EXPECT_NE(escape_name("\\"), escape_name("\\\\"));
  std::set<std::string> keys;
  int names = 0;
  for (int one = 0; one < 256; ++one) {
    for (const int other : {0x5C, 0x78, 0x66, 0x80, 0xC3, 0xFF, 0x2F}) {
      keys.insert(escape_name(std::string{static_cast<char>(one), static_cast<char>(other), 'f', 'f'}));
      ++names;
    }
  }
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(names));
}

TEST(EscapedNames, AreRefusedWhereNothingIsEscapedSo) {
  for (const std::string text : {"\\", "\\y", "\\x", "\\xf", "\\xFF", "\\xg0"})
    EXPECT_FALSE(unescape_name(text)) << text;
}

TEST(ManifestText, IsCanonicalAndComesBackTheSame) {
  TemporaryFolder place;
  place.write("b.txt", "bytes");
  place.make_folder("a");
  place.write("a/\xff\n", "");
  place.link("../nowhere", "a/link");
  ASSERT_EQ(0, ::mkfifo(place.at("pipe").c_str(), 0600));
  const Manifest manifest = tree_of(place.open()).manifest;
  const std::string text = manifest_text(manifest);
  EXPECT_EQ(text, R"({"entries":{"a":{"kind":"folder"},"a/\\xff\n":{"byte_count":0,"kind":"file",)"
                  R"("sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},)"
                  R"("a/link":{"kind":"link","target":"../nowhere"},"b.txt":{"byte_count":5,"kind":"file","sha256":")" +
                      sha256_hex("bytes") + R"("},"pipe":{"kind":"other"}},"protocol":"holdfast.manifest.1"})");
  EXPECT_EQ(text, dump_canonical(*parse_json(text)));
  const auto again = parse_manifest(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, manifest);
  EXPECT_EQ(manifest_text({}), R"({"entries":{},"protocol":"holdfast.manifest.1"})");
}

TEST(ManifestText, IsRefusedWhereItIsNone) {
  for (const char* text :
       {"", "[]", "{}", R"({"protocol":"holdfast.manifest.2","entries":{}})", R"({"protocol":"holdfast.manifest.1"})",
        R"({"protocol":"holdfast.manifest.1","entries":[]})",
        R"({"protocol":"holdfast.manifest.1","entries":{"a":{"kind":"file"}}})",
        R"({"protocol":"holdfast.manifest.1","entries":{"a":1}})",
        R"({"protocol":"holdfast.manifest.1","entries":{"\\q":{"kind":"folder"}}})",
        R"({"protocol":"holdfast.manifest.1","entries":{"a":{"kind":"folder"},"a":{"kind":"other"}}})"}) {
    EXPECT_TRUE(refused_with(parse_manifest(text), Code::state_unreadable)) << text;
  }
}

TEST(ReadTree, LeavesOutTheControlFolderAndOurTemporaryFilesAndNothingElse) {
  TemporaryFolder place;
  place.make_folder(".squad/locks");
  place.make_folder("below/.squad");  // another workspace's: not ours
  place.write(".holdfast-0123456789abcdef.staged", "x");
  place.write("below/.holdfast-0123456789abcdef.divert", "x");
  place.write(".holdfast-0123456789abcdeg.staged", "x");
  place.write(".holdfast-0123456789abcdef.stagedx", "x");
  place.write("x.holdfast-0123456789abcdef.staged", "x");
  place.make_folder(".holdfast-ffffffffffffffff.staged");
  const auto squad = os::facts_of_open(place.open(".squad"));
  const auto tree = read_tree(place.open(), squad->identity, plain_digest);
  EXPECT_EQ(paths_of(tree->manifest), (Paths{".holdfast-0123456789abcdef.stagedx", ".holdfast-0123456789abcdeg.staged",
                                             ".holdfast-ffffffffffffffff.staged", "below", "below/.squad",
                                             "x.holdfast-0123456789abcdef.staged"}));
}

TEST(ReadTree, TakesAnyNameAndAnyDepth) {
  TemporaryFolder place;
  for (const std::string name : {"a b", "new\nline", "\xff\xfe", "..a", "...", "\\xff", "-rf", "*"})
    place.write(name, "x");
  const os::Handle deepest = make_chain(place, "twenty-bytes-of-name", 200);
  os::Handle leaf_file(::openat(deepest.fd(), "leaf", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(os::write_all(leaf_file, "deep").ok());
  const Tree tree = tree_of(place.open());
  EXPECT_EQ(tree.manifest.size(), 8U + 200U + 1U);
  // 4204 bytes: more than a system call takes.
  const auto leaf = std::find_if(tree.manifest.begin(), tree.manifest.end(),
                                 [](const auto& entry) { return entry.first.ends_with("/leaf"); });
  ASSERT_NE(leaf, tree.manifest.end());
  EXPECT_EQ(leaf->first.size(), 4204U);
  EXPECT_EQ(leaf->second.sha256, sha256_hex("deep"));
  EXPECT_TRUE(*tree_is_still(place.open(), {}, tree));
  support::spawn({"rm", "-rf", place.at("twenty-bytes-of-name")}).wait();
}

TEST(ReadTree, CallsWhatIsTooDeepUnreadable) {
  TemporaryFolder place;
  make_chain(place, "d", os::kWalkDepthMax + 3);
  const Tree tree = tree_of(place.open());
  EXPECT_EQ(tree.manifest.size(), os::kWalkDepthMax + 1);
  EXPECT_EQ(tree.manifest.rbegin()->second.kind, "unreadable");
  support::spawn({"rm", "-rf", place.at("d")}).wait();
}

TEST(ReadTree, NeitherHangsNorFollowsWhereNoFileIs) {
  TemporaryFolder place;
  TemporaryFolder outside;
  outside.write("secret", "secret");
  ASSERT_EQ(0, ::mkfifo(place.at("fifo").c_str(), 0600));
  const os::Handle listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  place.at("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(0, ::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  place.link("nothing", "dangling");
  place.link("loop", "loop");
  place.link(".", "here");
  place.link(outside.path(), "out");
  place.link(outside.at("secret"), "out-file");
  const Manifest manifest = tree_of(place.open()).manifest;
  EXPECT_EQ(manifest.at("fifo").kind, "other");
  EXPECT_EQ(manifest.at("socket").kind, "other");
  EXPECT_EQ(manifest.at("dangling").target, "nothing");
  EXPECT_EQ(manifest.at("loop").target, "loop");
  EXPECT_EQ(manifest.at("out").target, outside.path());
  EXPECT_EQ(manifest.at("out-file").kind, "link");
  EXPECT_EQ(manifest.size(), 7U);
}

TEST(ReadTree, NeverLeadsOutsideWhileAFolderAndALinkChangePlaces) {
  TemporaryFolder place;
  TemporaryFolder outside;
  for (int number = 0; number < 20; ++number) {
    place.make_folder("flip/f" + std::to_string(number));
    place.write("flip/f" + std::to_string(number) + "/inside", "inside");
    outside.make_folder("f" + std::to_string(number));
    outside.write("f" + std::to_string(number) + "/inside", "SECRET");
    outside.write("f" + std::to_string(number) + "/outside", "SECRET");
  }
  place.link(outside.path(), "flop");
  std::atomic<bool> stop = false;
  std::atomic<int> swaps = 0;
  std::thread swapper([&] {
    while (!stop) {
      ::syscall(SYS_renameat2, AT_FDCWD, place.at("flip").c_str(), AT_FDCWD, place.at("flop").c_str(), 2U);
      ++swaps;
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  const os::Handle folder = place.open();
  int files = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (const auto& [path, entry] : tree_of(folder).manifest) {
      ASSERT_EQ(path.find("outside"), std::string::npos) << path;
      if (entry.kind != "file") continue;
      ++files;
      ASSERT_EQ(entry.sha256, sha256_hex("inside")) << path;
    }
  }
  stop = true;
  swapper.join();
  EXPECT_GT(swaps, 100);
  EXPECT_GT(files, 0);
}

// A role: what a user without rights sees of a tree.
int as_nobody(const std::vector<std::string>& arguments) {
  if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 9;
  const os::Handle folder(::open(arguments.at(0).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto tree = read_tree(folder, {}, plain_digest);
  support::say(tree.ok() ? manifest_text(tree->manifest) : std::string(tree.refusal().code_name()));
  return 0;
}
const support::RegisterRole kAsNobody("manifest_as_nobody", as_nobody);

TEST(ReadTree, CallsUnreadableWhatItMayNotRead) {
  TemporaryFolder place;
  place.make_folder("no-list");
  place.make_folder("no-search");
  for (const char* name : {"no-list/file", "no-search/file", "no-read", "readable"}) place.write(name, "x");
  ASSERT_EQ(0, ::chmod(place.path().c_str(), 0755));
  ASSERT_EQ(0, ::chmod(place.at("no-list").c_str(), 0711));
  ASSERT_EQ(0, ::chmod(place.at("no-search").c_str(), 0744));
  ASSERT_EQ(0, ::chmod(place.at("no-read").c_str(), 0600));
  ASSERT_EQ(0, ::chmod(place.at("readable").c_str(), 0644));
  support::Child nobody = support::spawn_as("manifest_as_nobody", {place.path()});
  const auto manifest = parse_manifest(nobody.read_line());
  ASSERT_EQ(nobody.wait(), 0);
  ASSERT_TRUE(manifest.ok()) << manifest.refusal().message();
  EXPECT_EQ(paths_of(*manifest), (Paths{"no-list", "no-read", "no-search", "readable"}));
  for (const char* name : {"no-list", "no-read", "no-search"}) EXPECT_EQ(manifest->at(name).kind, "unreadable") << name;
  EXPECT_EQ(manifest->at("readable").kind, "file");
}

TEST(ReadTree, ReadsAgainOnlyWhatChangedSince) {
  TemporaryFolder place;
  for (const char* name : {"a", "b", "c"}) place.write(name, "old");
  const Tree before = tree_of(place.open());
  place.write("b", "new");
  std::filesystem::remove(place.at("c"));
  place.write("c", "old");  // another object
  place.write("d", "added");
  Paths read;
  const DigestOf counting = [&](const std::string& key, const os::Handle& file) {
    read.push_back(key);
    return os::sha256_of_open(file);
  };
  const auto after = read_tree(place.open(), {}, counting, &before);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(read, (Paths{"b", "c", "d"}));
  EXPECT_EQ(after->manifest, tree_of(place.open()).manifest);
}

TEST(TreeIsStill, SeesEveryKindOfChange) {
  const std::vector<std::pair<const char*, void (*)(const TemporaryFolder&)>> changes = {
      {"content of the same size", [](const TemporaryFolder& at) { at.write("a", "NEW"); }},
      {"a new file", [](const TemporaryFolder& at) { at.write("in/n", ""); }},
      {"a deleted file", [](const TemporaryFolder& at) { std::filesystem::remove(at.at("a")); }},
      {"a renamed file", [](const TemporaryFolder& at) { std::filesystem::rename(at.at("a"), at.at("z")); }},
      {"a file in place of another",
       [](const TemporaryFolder& at) { std::filesystem::rename(at.at("b"), at.at("a")); }},
      {"a link elsewhere",
       [](const TemporaryFolder& at) {
         std::filesystem::remove(at.at("link"));
         at.link("b", "link");
       }},
      {"a folder in place of a file", [](const TemporaryFolder& at) {
         std::filesystem::remove(at.at("a"));
         at.make_folder("a");
       }}};
  for (const auto& [what, change] : changes) {
    TemporaryFolder place;
    place.make_folder("in");
    place.write("a", "old");
    place.write("b", "old");
    place.link("a", "link");
    const Tree tree = tree_of(place.open());
    EXPECT_TRUE(*tree_is_still(place.open(), {}, tree)) << what;
    change(place);
    EXPECT_FALSE(*tree_is_still(place.open(), {}, tree)) << what;
  }
}

TEST(Compare, SaysWhatDiffersOnEitherSide) {
  const Manifest expected = {{"a", {"file", "1", 1, ""}}, {"b", {"folder", "", 0, ""}}, {"c", {"link", "", 0, "x"}}};
  const Manifest actual = {{"a", {"file", "2", 1, ""}}, {"c", {"link", "", 0, "y"}}, {"d", {"other", "", 0, ""}}};
  const Comparison found = compare(expected, actual);
  EXPECT_EQ(differing(found), (Paths{"a", "b", "c", "d"}));
  EXPECT_FALSE(found.differences[1].actual);
  EXPECT_FALSE(found.differences[3].expected);
  EXPECT_TRUE(compare(expected, expected).differences.empty());
}

TEST(Compare, ClaimsNothingOfWhatCouldNotBeRead) {
  const ManifestEntry file{"file", "1", 1, ""};
  const ManifestEntry folder{"folder", "", 0, ""};
  const ManifestEntry unreadable{"unreadable", "", 0, ""};
  const Manifest expected = {{"a", file}, {"f", folder}, {"f/x", file}, {"f/g/y", file}, {"gone", unreadable}};
  const Manifest actual = {{"a", unreadable}, {"f", unreadable}, {"new", unreadable}};
  const Comparison found = compare(expected, actual);
  EXPECT_EQ(found.unverifiable, (Paths{"a", "f"}));
  EXPECT_EQ(differing(found), (Paths{"gone", "new"}));
}

}  // namespace
}  // namespace holdfast::engine
