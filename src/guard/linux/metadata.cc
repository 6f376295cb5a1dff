// Owner, mode, access list and extended attributes, carried from one inode to another (field reports B70, M08).
//
// Order matters: chown clears set-user-id and file capabilities, chmod by an outsider of the group clears set-group-id
// without an error, and an access list changes the group bits of the mode. So: owner, mode, attributes, mode again,
// times; then everything is read back, since some of these fail in silence.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "guard/guard.h"

namespace holdfast::guard {
namespace {

using Attributes = std::map<std::string, std::string>;

// Labels that the kernel's security module gives each inode by policy; taking one away is never ours to do.
bool is_label(const std::string& name) {
  return name == "security.selinux" || name.rfind("security.SMACK64", 0) == 0 || name == "security.apparmor";
}

Result<std::string> attribute(const os::Handle& object, const std::string& name) {
  for (;;) {
    const ssize_t size = ::fgetxattr(object.fd(), name.c_str(), nullptr, 0);
    if (size < 0) return os::os_refusal(Code::metadata_not_preservable, "fgetxattr " + name, errno);
    std::string value(static_cast<std::size_t>(size), '\0');
    const ssize_t got = ::fgetxattr(object.fd(), name.c_str(), value.data(), value.size());
    if (got < 0 && errno == ERANGE) continue;  // it grew in between
    if (got < 0) return os::os_refusal(Code::metadata_not_preservable, "fgetxattr " + name, errno);
    value.resize(static_cast<std::size_t>(got));
    return value;
  }
}

Result<Attributes> attributes_of(const os::Handle& object) {
  Attributes attributes;
  std::string names;
  for (;;) {
    const ssize_t size = ::flistxattr(object.fd(), nullptr, 0);
    // A file system without attributes has none; neither has an object that can only be looked at.
    if (size < 0 && (errno == EOPNOTSUPP || errno == EBADF)) return attributes;
    if (size < 0) return os::os_refusal(Code::metadata_not_preservable, "flistxattr", errno);
    if (size == 0) return attributes;
    names.resize(static_cast<std::size_t>(size));
    const ssize_t got = ::flistxattr(object.fd(), names.data(), names.size());
    if (got < 0 && errno == ERANGE) continue;
    if (got < 0) return os::os_refusal(Code::metadata_not_preservable, "flistxattr", errno);
    names.resize(static_cast<std::size_t>(got));
    break;
  }
  for (std::size_t at = 0; at < names.size();) {
    const std::string name(names.c_str() + at);
    at += name.size() + 1;
    auto value = attribute(object, name);
    if (!value.ok() && value.refusal().details().value("os_error", 0) == ENODATA) continue;  // taken away meanwhile
    if (!value.ok()) return std::move(value).refusal();
    attributes[name] = std::move(value).value();
  }
  return attributes;
}

void apply_attributes(const os::Handle& object, const Attributes& wanted, Json& not_taken) {
  const auto present = attributes_of(object);
  if (!present.ok()) return;  // reading back says it
  for (const auto& [name, value] : *present) {
    // A default access list of the folder is inherited by a new file, but was not the old file's.
    if (!wanted.contains(name) && !is_label(name)) ::fremovexattr(object.fd(), name.c_str());
  }
  for (const auto& [name, value] : wanted) {
    const auto found = present->find(name);
    if (found != present->end() && found->second == value) continue;
    if (::fsetxattr(object.fd(), name.c_str(), value.data(), value.size(), 0) != 0) not_taken.push_back(name);
  }
}

struct timespec time_of(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = nanoseconds / kSecond;
  std::int64_t rest = nanoseconds % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return {seconds, rest};
}

void note(Json& not_taken, const std::string& what) {
  if (std::find(not_taken.begin(), not_taken.end(), Json(what)) == not_taken.end()) not_taken.push_back(what);
}

Result<void> compare_with_wanted(const os::Handle& object, const Metadata& wanted, bool keep_times, Json& not_taken) {
  HF_TRY(const Metadata now, metadata_of_open(object));
  if (now.user != wanted.user || now.group != wanted.group) note(not_taken, "owner");
  if (now.mode != wanted.mode) note(not_taken, "mode");
  if (keep_times && now.modified_ns != wanted.modified_ns) note(not_taken, "times");
  const Attributes have(now.attributes.begin(), now.attributes.end());
  const Attributes want(wanted.attributes.begin(), wanted.attributes.end());
  for (const auto& [name, value] : want) {
    if (const auto found = have.find(name); found == have.end() || found->second != value) note(not_taken, name);
  }
  for (const auto& [name, value] : have) {
    if (!want.contains(name) && !is_label(name)) note(not_taken, name);
  }
  if (not_taken.empty()) return {};
  return Refusal(Code::metadata_not_preservable, "the new file cannot be given all that the old one has",
                 Json{{"what", not_taken}});
}

}  // namespace

Result<Metadata> metadata_of_open(const os::Handle& object) {
  HF_TRY(const os::Facts facts, os::facts_of_open(object));
  HF_TRY(const Attributes attributes, attributes_of(object));
  struct stat found {};
  if (::fstat(object.fd(), &found) != 0) return os::os_refusal(Code::metadata_not_preservable, "fstat", errno);
  Metadata metadata;
  metadata.mode = facts.mode;
  metadata.user = facts.user;
  metadata.group = facts.group;
  metadata.modified_ns = facts.modified_ns;
  metadata.accessed_ns = found.st_atim.tv_sec * 1'000'000'000LL + found.st_atim.tv_nsec;
  metadata.attributes.assign(attributes.begin(), attributes.end());
  return metadata;
}

Result<void> apply_metadata(const os::Handle& object, const Metadata& metadata, bool keep_times) {
  Json not_taken = Json::array();
  HF_TRY(const os::Facts before, os::facts_of_open(object));
  if (before.user != metadata.user || before.group != metadata.group) {
    if (::fchown(object.fd(), metadata.user, metadata.group) != 0) not_taken.push_back("owner");
  }
  if (::fchmod(object.fd(), metadata.mode) != 0) not_taken.push_back("mode");
  apply_attributes(object, Attributes(metadata.attributes.begin(), metadata.attributes.end()), not_taken);
  HF_TRY(const os::Facts after, os::facts_of_open(object));
  if (after.mode != metadata.mode) ::fchmod(object.fd(), metadata.mode);
  if (keep_times) {
    const struct timespec times[2] = {time_of(metadata.accessed_ns), time_of(metadata.modified_ns)};
    if (::futimens(object.fd(), times) != 0) not_taken.push_back("times");
  }
  return compare_with_wanted(object, metadata, keep_times, not_taken);
}

}  // namespace holdfast::guard
