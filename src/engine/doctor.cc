#include "engine/doctor.h"

#include <algorithm>

#include "base/json.h"
#include "engine/doctor_attack_list.h"
#include "engine/doctor_attacks.h"
#include "engine/doctor_locks.h"
#include "os/hostile_neighbour.h"
#include "os/unnamed_file.h"
#include "os/workspace_folder.h"

namespace holdfast::engine {
namespace {

constexpr const char* kScratchPrefix = ".holdfast-doctor";
constexpr std::uint32_t kNobody = 65534;
constexpr std::chrono::seconds kBudget{12};

Json errno_name(int error) { return error == 0 ? Json(nullptr) : Json(os::facts_of_errno(error).name); }

Json not_held_mechanism(const char* name, bool usable, const std::string& reason) {
  return Json{{"mechanism", name},
              {"held_by_this_release", false},
              {"usable", usable},
              {"reason", reason},
              {"claims", {{"denies", Json::array()}, {"diverts", Json::array()}, {"detects", Json::array()}}},
              {"operations", Json::array()},
              {"agrees", true}};
}

// What is only listed says nothing about what can be loaded: with `bpf` in the list, loading was seen to be refused.
Json examine_bpf_lsm(const os::KernelFacts& kernel) {
  const bool read = kernel.security_modules_error == 0;
  Json mechanism = not_held_mechanism("bpf_lsm", false,
                                      read ? "nothing was loaded; the kernel lists " + kernel.security_modules
                                           : "nothing was loaded; the kernel's list cannot be read");
  mechanism["security_modules"] = read ? Json(kernel.security_modules) : Json(nullptr);
  mechanism["errno"] = errno_name(kernel.security_modules_error);
  return mechanism;
}

Json examine_landlock(const os::KernelFacts& kernel) {
  const bool there = kernel.landlock_version > 0;
  Json mechanism = not_held_mechanism(
      "landlock", there,
      there ? "version " + std::to_string(kernel.landlock_version) + ", asked of the kernel; nothing was confined"
            : "the kernel has none");
  mechanism["abi"] = kernel.landlock_version;
  mechanism["errno"] = errno_name(kernel.landlock_error);
  mechanism["needed_by"] = "run";
  return mechanism;
}

// What every guarded replacement needs beside a guard, each done once.
Result<Json> examine_publishing(os::ScratchFolder& scratch) {
  const auto nameless = os::make_unnamed_file(scratch.folder());
  const std::string one = scratch.next_name();
  const std::string other = scratch.next_name();
  HF_CHECK(scratch.put(one, "one", 0600));
  HF_CHECK(scratch.put(other, "other", 0600));
  const int error = os::exchange_two_names(scratch.folder(), one, other);
  Json unnamed = {{"works", nameless.ok()}};
  if (!nameless.ok()) unnamed["reason"] = printable(nameless.refusal().message());
  Json exchange = {{"works", error == 0}};
  if (error != 0) exchange["errno"] = errno_name(error);
  return Json{{"unnamed_files", std::move(unnamed)}, {"exchange_of_names", std::move(exchange)}};
}

const Json& mechanism_named(const Json& report, const char* name) {
  static const Json kNone = Json::object();
  for (const Json& mechanism : report["mechanisms"]) {
    if (mechanism["mechanism"] == name) return mechanism;
  }
  return kNone;
}

std::string listed(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

// "kernel_lease: open_write by append", of everything that was let through in spite of a claim.
std::vector<std::string> disagreements(const Json& report) {
  std::vector<std::string> found;
  for (const Json& mechanism : report["mechanisms"]) {
    const std::string name = mechanism["mechanism"];
    if (mechanism["agrees"] == true) continue;
    const std::size_t before = found.size();
    for (const Json& operation : mechanism["operations"]) {
      if (operation["agrees"] == true) continue;
      found.push_back(name + ": " + operation["operation"].get<std::string>() + " by " +
                      operation["way"].get<std::string>());
    }
    if (found.size() == before) found.push_back(name + ": " + mechanism.value("reason", std::string("does not hold")));
  }
  return found;
}

// The longest that the watch took to notice something.
std::int64_t noticed_within_ms(const Json& operations) {
  std::int64_t longest = 0;
  for (const Json& operation : operations)
    longest = std::max(longest, operation.value("noticed_within_ms", std::int64_t{0}));
  return longest;
}

// What a lease is worth here, in one sentence.
std::string conclusion_of(const Json& report) {
  if (const auto wrong = disagreements(report); !wrong.empty()) {
    return "Do not rely on a guard here: what it claims was let through (" + wrong.front() +
           (wrong.size() > 1 ? " and " + std::to_string(wrong.size() - 1) + " more" : "") + ").";
  }
  if (report["local"] == false) {
    return "This file system is not local: Holdfast leases nothing on it, because its locks and identities are not "
           "this kernel's.";
  }
  const Json& lease = mechanism_named(report, "kernel_lease");
  if (lease["usable"] != true) {
    return "No guard is called enforced here (" +
           (lease["reason"].is_string() ? lease["reason"].get<std::string>() : std::string("no reason")) +
           "): what is shown as stopped is no promise, and the check at the end of a lease finds what others wrote.";
  }
  return "A lease held by a server keeps the bytes under the leased name: what others do to them (" +
         listed(lease["claims"]["diverts"]) + ") is denied or lands in an object without the name; " +
         listed(lease["claims"]["detects"]) + " are not stopped, and were noticed within " +
         std::to_string(noticed_within_ms(lease["operations"])) + " ms.";
}

Json what_was_not_tried(const Json& report) {
  Json all = Json::array();
  for (const Json& mechanism : report["mechanisms"]) {
    const std::string name = mechanism["mechanism"];
    if (name == "bpf_lsm") all.push_back({{"what", "bpf_lsm"}, {"why", "this release has no program to load"}});
    if (name == "landlock")
      all.push_back({{"what", "landlock"}, {"why", "it confines what `run` starts, and guards no file"}});
    if (name == "immutable_flag" && mechanism["usable"] == false) {
      all.push_back({{"what", "immutable_flag"}, {"why", mechanism["reason"]}});
    }
    for (const Json& operation : mechanism["operations"]) {
      if (operation["outcome"] != "not_tried") continue;
      all.push_back({{"what", name + ": " + operation["operation"].get<std::string>() + " by " +
                                  operation["way"].get<std::string>()},
                     {"why", operation.value("detail", "")}});
    }
  }
  for (Json& entry : never_tried()) all.push_back(std::move(entry));
  return all;
}

Result<Json> examine_all(const os::WorkspaceFolder& workspace, os::ScratchFolder& scratch,
                         const os::KernelFacts& kernel, const DoctorOptions& options) {
  HF_TRY(const auto guards, guard::make_guards(workspace.root));
  const std::string folder = workspace.root_path + "/" + scratch.name();
  DoctorAttacker attacker(options.attacker, folder, std::nullopt, options.asked_to_end);
  DoctorAttacker nobody(options.attacker, folder, kNobody, options.asked_to_end);
  DoctorGround ground{.scratch = scratch,
                      .guards = *guards,
                      .attacker = attacker,
                      .other_user = kernel.is_superuser ? &nobody : nullptr,
                      .kernel = kernel,
                      .asked_to_end = options.asked_to_end,
                      .deadline = std::chrono::steady_clock::now() + kBudget};
  Json mechanisms = Json::array();
  // The locks first: they are quick, and nothing else here would be worth anything without them.
  HF_TRY(Json mutex, examine_transition_mutex(scratch, attacker));
  HF_TRY(Json liveness, examine_liveness_lock(scratch, attacker));
  HF_TRY(Json lease, examine_guard(ground));
  HF_TRY(Json flag, examine_immutable_flag(ground));
  mechanisms.push_back(std::move(lease));
  mechanisms.push_back(std::move(flag));
  mechanisms.push_back(examine_bpf_lsm(kernel));
  mechanisms.push_back(examine_landlock(kernel));
  mechanisms.push_back(std::move(mutex));
  mechanisms.push_back(std::move(liveness));
  return mechanisms;
}

}  // namespace

Result<Json> doctor(const std::string& root, const DoctorOptions& options) {
  HF_ASSERT(!options.attacker.empty());
  HF_TRY(const os::WorkspaceFolder workspace, os::open_workspace(root));
  const os::KernelFacts kernel = os::kernel_facts();
  // Another user reaches his file by its name alone; nobody can list the folder.
  HF_TRY(const auto scratch,
         os::ScratchFolder::make_in(workspace.root, kScratchPrefix, kernel.is_superuser ? 0711U : 0700U));
  Json report = {
      {"workspace_file_system", workspace.file_system},
      {"local", workspace.local},
      {"kernel", kernel.system + " " + kernel.release + " " + kernel.machine},
      {"user", kernel.user},
      {"lease_break_seconds", kernel.lease_break_seconds ? Json(*kernel.lease_break_seconds) : Json(nullptr)}};
  HF_TRY(report["mechanisms"], examine_all(workspace, *scratch, kernel, options));
  HF_TRY(report["publishing"], examine_publishing(*scratch));
  report["proof_of_no_earlier_writer"] = mechanism_named(report, "kernel_lease")["preexisting_writers"] == "excluded";
  report["not_tried"] = what_was_not_tried(report);
  const auto wrong = disagreements(report);
  report["passed"] = wrong.empty();
  report["conclusion"] = conclusion_of(report);
  HF_CHECK(scratch->remove());
  if (wrong.empty()) return Json{{"doctor", std::move(report)}};
  return Refusal(Code::doctor_disagrees, "what the guard claims was let through: " + wrong.front(),
                 Json{{"doctor", std::move(report)}, {"operations", wrong}});
}

}  // namespace holdfast::engine
