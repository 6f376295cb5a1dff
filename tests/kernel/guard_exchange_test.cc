// Replacing a guarded file: what is kept, what is refused, what is captured.
#include <sys/mount.h>
#include <sys/xattr.h>

#include "guard_ground.h"

namespace holdfast::guard {
namespace {

constexpr const char* kTemporary = ".holdfast-0123456789abcdef.tmp";

class ReplacedOn : public ::testing::TestWithParam<Ground::On> {};

INSTANTIATE_TEST_SUITE_P(EachFileSystem, ReplacedOn, ::testing::Values(Ground::On::disk, Ground::On::memory),
                         [](const auto& parameters) {
                           return parameters.param == Ground::On::disk ? "Disk" : "Tmpfs";
                         });

TEST_P(ReplacedOn, PublishesAndKeepsGuarding) {
  Ground ground(GetParam());
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  const os::Identity before = guard->identity();
  const auto token = guard->content_token();
  auto exchanged = replace_with(*guard, "new");
  ASSERT_TRUE(exchanged.ok()) << exchanged.refusal().message();
  EXPECT_EQ("new", bytes_of(ground.path("f")));
  EXPECT_TRUE(exchanged->destination_existed);
  EXPECT_EQ(before, exchanged->displaced_identity);
  EXPECT_EQ("old", text_of(*exchanged->displaced));
  EXPECT_EQ("old", bytes_of(ground.path(kTemporary)));
  EXPECT_EQ(exchanged->published, guard->identity());
  EXPECT_NE(token, guard->content_token());
  {
    const auto verified = guard->verify(exchanged->published);
    ASSERT_TRUE(verified.ok());
    EXPECT_TRUE(verified->guard_identity_matches_published);
    EXPECT_TRUE(verified->guard_resolved_path_matches_scope);
    EXPECT_EQ("new", text_of(verified->object));
  }
  EXPECT_TRUE(guard->drop_displaced(*exchanged).ok());
  EXPECT_TRUE(ground.leftovers().empty());

  EXPECT_EQ(0, run_shell("printf FOREIGN >> " + ground.path("f")));
  EXPECT_EQ("new", bytes_of(ground.path("f")));
  EXPECT_TRUE(guard->check().ok());
  // The divert put a twin in its place, which is what was published as well.
  EXPECT_TRUE(guard->verify(exchanged->published)->guard_identity_matches_published);
}

TEST_P(ReplacedOn, PublishesWhereNothingWas) {
  Ground ground(GetParam());
  const auto guard = ground.take("f");
  EXPECT_FALSE(guard->enforcement().enforced);
  const auto exchanged = replace_with(*guard, "new");
  ASSERT_TRUE(exchanged.ok()) << exchanged.refusal().message();
  EXPECT_FALSE(exchanged->destination_existed);
  EXPECT_EQ("new", bytes_of(ground.path("f")));
  EXPECT_TRUE(guard->enforcement().enforced) << guard->enforcement().to_json();
  EXPECT_TRUE(ground.leftovers().empty());
  struct stat found {};
  ASSERT_EQ(0, ::stat(ground.path("f").c_str(), &found));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(0666U & ~mask, found.st_mode & 07777U);
}

TEST(Exchange, RefusesWhatAppearedAtAnAbsentDestination) {
  Ground ground;
  const auto guard = ground.take("f");
  const auto exchanged = replace_with(*guard, "new", [&] {
    put_bytes(ground.path("f"), "FOREIGN");
    return Result<void>();
  });
  ASSERT_FALSE(exchanged.ok());
  EXPECT_EQ(Code::destination_identity_changed, exchanged.refusal().code());
  EXPECT_EQ(Effect::none, exchanged.refusal().effect());
  EXPECT_EQ("FOREIGN", bytes_of(ground.path("f")));
  EXPECT_TRUE(ground.leftovers().empty());
}

TEST(Exchange, CapturesAForeignObjectThatSlippedIn) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  const os::Identity preimage = guard->identity();
  auto exchanged = replace_with(*guard, "new", [&] {
    EXPECT_EQ(0,
              run_shell("printf FOREIGN > " + ground.path("g") + "; mv " + ground.path("g") + " " + ground.path("f")));
    return Result<void>();
  });
  ASSERT_TRUE(exchanged.ok());
  EXPECT_NE(preimage, exchanged->displaced_identity);
  EXPECT_FALSE(exchanged->displaced_was_guarded);
  EXPECT_EQ("FOREIGN", text_of(*exchanged->displaced));
  EXPECT_EQ("FOREIGN", bytes_of(ground.path(kTemporary)));
  EXPECT_EQ("new", bytes_of(ground.path("f")));
}

TEST(Exchange, CapturesALinkThatSlippedInWithoutFollowingIt) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  put_bytes(ground.path("elsewhere"), "untouched");
  const auto guard = ground.take("f");
  auto exchanged = replace_with(*guard, "new", [&] {
    EXPECT_EQ(0, run_shell("cd " + ground.folder() + "; ln -s elsewhere g; mv -T g f"));
    return Result<void>();
  });
  ASSERT_TRUE(exchanged.ok());
  EXPECT_FALSE(exchanged->displaced_was_guarded);
  EXPECT_TRUE(exchanged->displaced_identity.known());
  EXPECT_EQ("untouched", bytes_of(ground.path("elsewhere")));
  EXPECT_EQ("new", bytes_of(ground.path("f")));
}

TEST(Exchange, RefusesWhereTheNameVanishedAtTheLastMoment) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  const auto exchanged = replace_with(*guard, "new", [&] {
    EXPECT_EQ(0, ::unlink(ground.path("f").c_str()));
    return Result<void>();
  });
  ASSERT_FALSE(exchanged.ok());
  EXPECT_EQ(Code::destination_identity_changed, exchanged.refusal().code());
  EXPECT_EQ(Effect::none, exchanged.refusal().effect());
  EXPECT_TRUE(ground.leftovers().empty());
  EXPECT_FALSE(guard->check().ok());
}

TEST(Exchange, IsUndoneByTheRefusalOfItsLastStep) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  bool temporary_was_there = false;
  const auto exchanged = replace_with(*guard, "new", [&]() -> Result<void> {
    temporary_was_there = bytes_of(ground.path(kTemporary)) == "new" && bytes_of(ground.path("f")) == "old";
    return Refusal(Code::preimage_hash_mismatch, "no");
  });
  ASSERT_FALSE(exchanged.ok());
  EXPECT_EQ(Code::preimage_hash_mismatch, exchanged.refusal().code());
  EXPECT_TRUE(temporary_was_there);
  EXPECT_EQ("old", bytes_of(ground.path("f")));
  EXPECT_TRUE(ground.leftovers().empty());
  EXPECT_TRUE(guard->check().ok());
}

TEST(Exchange, TakesTheNameFromUnderAWriterThatCameMeanwhile) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  std::unique_ptr<Process> writer;
  const auto exchanged = replace_with(*guard, "new", [&] {
    writer = std::make_unique<Process>(Process::shell("echo about; printf FOREIGN >> " + ground.path("f")));
    EXPECT_EQ("about", writer->line());
    EXPECT_EQ(-1, writer->wait(50));  // the guard stands: the writer waits
    return Result<void>();
  });
  ASSERT_TRUE(exchanged.ok());
  EXPECT_EQ("old", bytes_of(ground.path(kTemporary)));  // not even the displaced object is written to yet
  EXPECT_TRUE(guard->drop_displaced(*exchanged).ok());
  EXPECT_EQ(0, writer->wait());
  EXPECT_EQ("new", bytes_of(ground.path("f")));
  const auto diverted = ground.observed("write_diverted");
  ASSERT_TRUE(diverted.has_value());
  EXPECT_EQ("exchange", diverted->facts["by"]);
  EXPECT_TRUE(diverted->who.is_object());
  const auto captured = ground.observed("diverted_bytes_captured");
  ASSERT_TRUE(captured.has_value());
  EXPECT_EQ("oldFOREIGN", text_of(*captured->bytes));
  EXPECT_TRUE(guard->check().ok());
}

TEST(Exchange, LetsAWriterInAfterAWhileWhereTheDisplacedObjectIsNeverDropped) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  const auto exchanged = replace_with(*guard, "new");
  ASSERT_TRUE(exchanged.ok());
  EXPECT_EQ(0, run_shell("printf x >> " + ground.path(kTemporary)));
  EXPECT_EQ("new", bytes_of(ground.path("f")));
  EXPECT_TRUE(guard->check().ok());
}

// Field report B75, M09: a bind-mounted file.
TEST(Exchange, RefusesAMountPoint) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  Ground ground;
  put_bytes(ground.path("f"), "old");
  put_bytes(ground.path("g"), "mounted");
  ASSERT_EQ(0, ::mount(ground.path("g").c_str(), ground.path("f").c_str(), nullptr, MS_BIND, nullptr));
  {
    const auto guard = ground.take("f");
    const auto exchanged = replace_with(*guard, "new");
    EXPECT_FALSE(exchanged.ok());
    if (!exchanged.ok()) { EXPECT_EQ(Code::destination_is_mount_point, exchanged.refusal().code()); }
  }
  EXPECT_EQ(0, ::umount2(ground.path("f").c_str(), MNT_DETACH));
  EXPECT_EQ("old", bytes_of(ground.path("f")));
  EXPECT_EQ("mounted", bytes_of(ground.path("g")));
  EXPECT_TRUE(ground.leftovers().empty());
}

TEST(Staging, LeavesNothingBehindWhenDropped) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const auto guard = ground.take("f");
  {
    auto staged = guard->stage().value();
    ASSERT_TRUE(staged->write("half").ok());
    EXPECT_TRUE(ground.leftovers().empty());
  }
  EXPECT_TRUE(ground.leftovers().empty());
  EXPECT_EQ("old", bytes_of(ground.path("f")));
}

TEST(Staging, TakesNothingMoreOnceItIsSealed) {
  Ground ground;
  const auto guard = ground.take("f");
  auto staged = guard->stage().value();
  ASSERT_TRUE(staged->write("all ").ok());
  ASSERT_TRUE(staged->write("of it").ok());
  const auto digest = staged->seal(std::nullopt);
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(sha256_hex("all of it"), digest->sha256);
  EXPECT_EQ(9U, digest->byte_count);
  EXPECT_FALSE(staged->write("more").ok());
  EXPECT_FALSE(staged->seal(std::nullopt).ok());
}

TEST(Staging, SaysSoWhereTheDiskIsFull) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  Ground ground;
  ASSERT_EQ(0, ::mount("tmpfs", ground.folder().c_str(), "tmpfs", 0, "size=64k"));
  put_bytes(ground.path("f"), "old");
  {
    const auto guard = ground.take("f");
    const auto exchanged = replace_with(*guard, std::string(1U << 20U, 'x'));
    EXPECT_FALSE(exchanged.ok());
    if (!exchanged.ok()) { EXPECT_EQ(Code::staging_failed, exchanged.refusal().code()); }
    EXPECT_EQ("old", bytes_of(ground.path("f")));
    EXPECT_TRUE(guard->check().ok());
  }
  EXPECT_EQ(0, ::umount2(ground.folder().c_str(), MNT_DETACH));
}

TEST(Staging, SaysSoWhereTheFileSystemIsReadOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to mount";
  Ground ground;
  ASSERT_EQ(0, ::mount("tmpfs", ground.folder().c_str(), "tmpfs", 0, "size=64k"));
  put_bytes(ground.path("f"), "old");
  ASSERT_EQ(0, ::mount(nullptr, ground.folder().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr));
  {
    const auto guard = ground.take("f");
    EXPECT_FALSE(guard->enforcement().enforced);
    EXPECT_EQ(Code::destination_read_only, guard->stage().refusal().code());
  }
  EXPECT_EQ(0, ::umount2(ground.folder().c_str(), MNT_DETACH));
}

// user::rw- user:1000:r-- group::r-- mask::r-- other::---, as the kernel stores it.
std::string access_list() {
  const unsigned char raw[] = {2, 0,   0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  4,
                               0, 232, 3,   0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16, 0,
                               4, 0,   255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  return std::string(reinterpret_cast<const char*>(raw), sizeof raw);
}

std::string attribute_of(const std::string& path, const std::string& name) {
  char value[256];
  const ssize_t size = ::getxattr(path.c_str(), name.c_str(), value, sizeof value);
  return size < 0 ? "" : std::string(value, static_cast<std::size_t>(size));
}

void dress_up(const std::string& path) {
  ASSERT_EQ(0, ::chown(path.c_str(), 1234, 4321));
  ASSERT_EQ(0, ::chmod(path.c_str(), 06640));
  ASSERT_EQ(0, ::setxattr(path.c_str(), "user.note", "kept", 4, 0));
  ASSERT_EQ(0, ::setxattr(path.c_str(), "trusted.note", "kept too", 8, 0));
  const std::string list = access_list();
  ASSERT_EQ(0, ::setxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size(), 0));
  // cap_net_bind_service=ep, which chown and a write would clear.
  const unsigned char capability[] = {1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_EQ(0, ::setxattr(path.c_str(), "security.capability", capability, sizeof capability, 0));
  const struct timespec times[2] = {{1111111111, 5}, {1222222222, 7}};
  ASSERT_EQ(0, ::utimensat(AT_FDCWD, path.c_str(), times, 0));
}

void expect_dressed_up(const std::string& path) {
  struct stat found {};
  ASSERT_EQ(0, ::stat(path.c_str(), &found));
  EXPECT_EQ(1234U, found.st_uid);
  EXPECT_EQ(4321U, found.st_gid);
  EXPECT_EQ(06640U, found.st_mode & 07777U);
  EXPECT_EQ("kept", attribute_of(path, "user.note"));
  EXPECT_EQ("kept too", attribute_of(path, "trusted.note"));
  EXPECT_EQ(access_list(), attribute_of(path, "system.posix_acl_access"));
  EXPECT_EQ(20U, attribute_of(path, "security.capability").size());
}

// Field reports B70, M08.
TEST(MetadataOfAFile, IsKeptByAReplacement) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to give a file away";
  Ground ground;
  put_bytes(ground.path("f"), "old");
  dress_up(ground.path("f"));
  const auto guard = ground.take("f");
  const auto exchanged = replace_with(*guard, "new");
  ASSERT_TRUE(exchanged.ok()) << exchanged.refusal().message();
  expect_dressed_up(ground.path("f"));
  EXPECT_EQ("new", bytes_of(ground.path("f")));
}

TEST(MetadataOfAFile, IsKeptByADivertTimesIncluded) {
  if (::geteuid() != 0) GTEST_SKIP() << "root is needed to give a file away";
  Ground ground;
  put_bytes(ground.path("f"), "old");
  dress_up(ground.path("f"));
  const auto guard = ground.take("f");
  ASSERT_TRUE(guard->enforcement().enforced) << guard->enforcement().to_json();
  EXPECT_EQ(0, run_shell("printf FOREIGN >> " + ground.path("f")));
  ASSERT_TRUE(ground.observed("write_diverted").has_value());
  expect_dressed_up(ground.path("f"));
  struct stat found {};
  ASSERT_EQ(0, ::stat(ground.path("f").c_str(), &found));
  EXPECT_EQ(1222222222, found.st_mtim.tv_sec);
  EXPECT_EQ(7, found.st_mtim.tv_nsec);
  EXPECT_TRUE(guard->check().ok());
  EXPECT_TRUE(ground.never_observed("metadata_changed"));
}

TEST(MetadataOfAFile, DoesNotTakeOverTheAccessListOfItsFolder) {
  Ground ground;
  put_bytes(ground.path("f"), "old");
  const std::string list = access_list();
  ASSERT_EQ(0, ::setxattr(ground.folder().c_str(), "system.posix_acl_default", list.data(), list.size(), 0));
  const auto guard = ground.take("f");
  ASSERT_TRUE(replace_with(*guard, "new").ok());
  EXPECT_EQ("", attribute_of(ground.path("f"), "system.posix_acl_access"));
}

TEST(MetadataOfAFile, IsRefusedWhereAPartDoesNotTake) {
  Ground ground(Ground::On::memory);
  put_bytes(ground.path("f"), "old");
  const os::Handle object = open_path(ground.path("f"), O_RDONLY);
  Metadata metadata = metadata_of_open(object).value();
  metadata.attributes.emplace_back("nonsense.name", "x");
  const auto applied = apply_metadata(object, metadata, false);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(Code::metadata_not_preservable, applied.refusal().code());
  EXPECT_EQ(Json::array({"nonsense.name"}), applied.refusal().details()["what"]);
}

}  // namespace
}  // namespace holdfast::guard
