#include "os/confinement.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "os/file.h"
#include "os/linux/landlock_rights.h"

namespace holdfast::os {
namespace landlock {

Result<int> usable_abi(long answer, int error) {
  if (answer >= kAbiNeeded) return static_cast<int>(answer);
  Json details = {{"mechanism", "landlock"}, {"abi_needed", kAbiNeeded}};
  if (answer > 0) {
    details["abi"] = answer;
    return Refusal(Code::confinement_unavailable, "this kernel's Landlock cannot deny truncation", std::move(details));
  }
  // ENOSYS: not built in; EOPNOTSUPP: built in and switched off when the machine started.
  details["os_error"] = error;
  return Refusal(Code::confinement_unavailable,
                 error == EOPNOTSUPP ? "Landlock is switched off" : "this kernel has no Landlock", std::move(details));
}

}  // namespace landlock

namespace {

#ifdef SYS_landlock_create_ruleset
constexpr long kCreateRuleset = SYS_landlock_create_ruleset;
constexpr long kAddRule = SYS_landlock_add_rule;
constexpr long kRestrictSelf = SYS_landlock_restrict_self;
#else
constexpr long kCreateRuleset = 444;  // one number on every architecture
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
#endif

constexpr unsigned kAskForVersion = 1;
constexpr int kRuleBelowPath = 1;

// As the kernel reads them; members that an older one does not know are zero and then accepted.
struct RulesetAttributes {
  std::uint64_t denied_files = 0;
  std::uint64_t denied_network = 0;
  std::uint64_t scopes = 0;
};
struct __attribute__((packed)) PathRule {
  std::uint64_t allowed;
  std::int32_t path;
};
static_assert(sizeof(PathRule) == 12);

// /dev/pts is the folder of terminals.
constexpr std::array kDevices = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                 "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts"};

Result<void> allow(const Handle& rules, const Handle& object, std::uint64_t rights) {
  const PathRule rule{rights, object.fd()};
  if (::syscall(kAddRule, rules.fd(), kRuleBelowPath, &rule, 0) == 0) return {};
  return os_refusal(Code::os_failed, "landlock_add_rule", errno);
}

Result<void> allow_devices(const Handle& rules, int abi) {
  for (const char* device : kDevices) {
    const Handle object(::open(device, O_PATH | O_CLOEXEC));
    if (!object && errno == ENOENT) continue;  // a container has but some
    if (!object) return os_refusal(Code::os_failed, "open", errno).with("path", device);
    struct stat status {};
    if (::fstat(object.fd(), &status) != 0) return os_refusal(Code::os_failed, "fstat", errno);
    // A regular file where a device belongs is what somebody left there, and nothing to write to.
    if (!S_ISCHR(status.st_mode) && !S_ISDIR(status.st_mode)) continue;
    HF_CHECK(allow(rules, object, landlock::allowed_on_device(abi)));
  }
  return {};
}

}  // namespace

Result<Confinement> Confinement::prepare(const std::vector<Handle>& writable_folders,
                                         const std::vector<Handle>& writable_files) {
  const long answer = ::syscall(kCreateRuleset, nullptr, 0, kAskForVersion);
  HF_TRY(const int abi, landlock::usable_abi(answer, answer < 0 ? errno : 0));
  const RulesetAttributes attributes{landlock::denied_by(abi), 0, landlock::scopes_of(abi)};
  const long created = ::syscall(kCreateRuleset, &attributes, sizeof attributes, 0);  // close-on-exec by itself
  if (created < 0) return os_refusal(Code::confinement_unavailable, "landlock_create_ruleset", errno);
  Handle rules(static_cast<Handle::Native>(created));
  HF_CHECK(allow_devices(rules, abi));
  for (const Handle& folder : writable_folders) { HF_CHECK(allow(rules, folder, landlock::allowed_below_folder(abi))); }
  for (const Handle& file : writable_files) HF_CHECK(allow(rules, file, landlock::kAllowedOnFile));
  return Confinement(std::move(rules), abi);
}

int Confinement::enter() const {
  // Without this a setuid program would run with rights that the confined one does not have; the kernel asks for it.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return ::syscall(kRestrictSelf, rules_.fd(), 0) == 0 ? 0 : errno;
}

}  // namespace holdfast::os
