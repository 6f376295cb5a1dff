#include "engine/folder_check.h"

#include <algorithm>

#include "base/json.h"
#include "scope/resolve.h"

namespace holdfast::engine {
namespace {

constexpr std::size_t kNamedMax = 100;
constexpr std::size_t kFilesMax = 10'000;
constexpr std::uint64_t kManifestBytesMax = 1ULL << 30U;

Json json_of(const std::optional<ManifestEntry>& entry) { return entry ? entry->to_json() : Json(nullptr); }

Result<Manifest> captured_manifest(Context& context, const Tenancy& tenancy) {
  if (!has_manifest(tenancy)) return Manifest();  // no folder was there: everything below it is new
  HF_TRY(const os::Handle entry, context.vault->open_verified(vault::Tier::primary, tenancy.pre_write.sha256));
  HF_TRY(const std::string text, os::read_whole(entry, kManifestBytesMax));
  return parse_manifest(text);
}

// Whether a difference is what a gated write under a nested lease left.
class GatedWrites {
 public:
  GatedWrites(Context& context, const Transition& transition, const Tenancy& folder)
      : context_(context), transition_(transition), folder_(folder) {}

  Result<bool> made(const Difference& difference) {
    if (!difference.actual || difference.actual->kind != "file") return false;
    const std::string& now = difference.actual->sha256;
    const auto bytes = unescape_name(difference.path);
    if (!bytes) return false;
    const std::string above = folder_.scope.relative();
    auto scope = parse_canonical_scope("file://project:/" + (above.empty() ? *bytes : above + "/" + *bytes));
    if (!scope.ok()) return false;  // a name that can't be leased
    bool captured_so = false;
    if (const Tenancy* held = transition_.state.find(*scope); held != nullptr && is_nested(*held)) {
      if (!held->post_sha256.empty()) return held->post_sha256 == now;
      captured_so = held->pre_write.sha256 == now;
    }
    HF_TRY(const auto last, context_.store->last_ended(*scope));
    if (last && is_nested(last->tenancy)) {
      if (!last->tenancy.post_sha256.empty()) return last->tenancy.post_sha256 == now;
      captured_so = captured_so || last->tenancy.pre_write.sha256 == now;
    }
    // The last nested tenancy wrote nothing: one before it may have, and only the evidence still knows.
    if (!captured_so) return false;
    HF_CHECK(read_evidence());
    const auto written = written_.find(scope->full());
    return written != written_.end() && written->second == now;
  }

 private:
  bool is_nested(const Tenancy& other) const {
    return other.owner == folder_.owner && other.task_id == folder_.task_id && other.generation > folder_.generation;
  }

  Result<void> read_evidence() {
    if (has_read_) return {};
    has_read_ = true;
    return context_.chain->each([this](const Json& event) {
      const std::string kind = text_member(event, "kind");
      if (kind != "write_published" && kind != "write_recovered") return true;
      const Json facts = event.value("facts", Json::object());
      const Json command = facts.value("command", Json::object());
      const bool nested = text_member(command, "owner") == folder_.owner &&
                          text_member(command, "task_id") == folder_.task_id &&
                          exact_u64(command.value("generation", Json())).value_or(0) > folder_.generation.value;
      if (nested) {
        written_[text_member(command, "resource")] =
            text_member(facts.value("outcome", Json::object()), "planned_sha256");
      }
      return true;
    });
  }

  Context& context_;
  const Transition& transition_;
  const Tenancy& folder_;
  bool has_read_ = false;
  std::map<std::string, std::string> written_;  // the last gated write by scope
};

// The name bears something else than a folder now, or nothing.
ContentCheck folder_is_gone(const Tenancy& tenancy, const Sight& sight) {
  ContentCheck check;
  Json actual = nullptr;
  if (sight.kind == "file") {
    actual = {{"kind", "file"}, {"sha256", sight.digest.sha256}, {"byte_count", sight.digest.byte_count}};
  } else if (sight.kind != "none") {
    actual = {{"kind", "other"}};
  }
  const Json expected = {{"kind", "folder"}};
  check.mismatch = true;
  check.amber_kind = "quarantine_ungated";
  check.document = {
      {"status", "mismatch"},
      {"baseline_source", "manifest"},
      {"expected_sha256", tenancy.pre_write.sha256},
      {"actual_sha256", nullptr},
      {"entries", 0},
      {"changed", {{{"path", ""}, {"how", "ungated"}, {"expected", expected}, {"actual", std::move(actual)}}}},
      {"gated", 0},
      {"ungated", 1},
      {"confined", 0}};
  return check;
}

// At most kNamedMax by name, what nobody answers for first.
Json named_changes(const std::vector<std::pair<std::string_view, const Difference*>>& changes) {
  Json named = Json::array();
  for (const std::string_view how : {"ungated", "confined", "gated"}) {
    for (const auto& [its_how, difference] : changes) {
      if (its_how != how || named.size() >= kNamedMax) continue;
      named.push_back({{"path", difference->path},
                       {"how", how},
                       {"expected", json_of(difference->expected)},
                       {"actual", json_of(difference->actual)}});
    }
  }
  return named;
}

}  // namespace

bool has_manifest(const Tenancy& tenancy) {
  return tenancy.scope.is_file() && tenancy.pre_write.kind == "folder" && !tenancy.pre_write.sha256.empty();
}

Result<Sight> capture_folder(Context& context, const os::Handle& folder, const os::Facts& facts, const Sight& before) {
  auto seen = std::make_shared<FolderSight>();
  const auto digest = [](const std::string&, const os::Handle& file) { return os::sha256_of_open(file); };
  HF_TRY(seen->tree, read_tree(folder, context.folder.squad_facts.identity, digest,
                               before.folder ? &before.folder->tree : nullptr));
  Sight sight;
  sight.kind = "folder";
  sight.facts = facts;
  HF_TRY(sight.digest, context.vault->store_bytes(vault::Tier::primary, manifest_text(seen->tree.manifest)));
  sight.folder = std::move(seen);
  return sight;
}

void look_into_folder(Context& context, const Tenancy& tenancy, const Sight* before, Sight& sight) {
  const auto look = [&]() -> Result<void> {
    HF_TRY(const Manifest captured, captured_manifest(context, tenancy));
    HF_TRY(const PinnedPlace place, pin_place(context.folder, tenancy.scope));
    if (!place.object || place.facts->kind != os::Kind::folder) {
      return Refusal(Code::file_unreadable, "the folder cannot be opened for reading");
    }
    const DigestOf digest = [&](const std::string& key, const os::Handle& file) -> Result<ContentDigest> {
      const auto known = captured.find(key);
      if (tenancy.confined || (known != captured.end() && known->second.kind == "file")) {
        HF_TRY(const ContentDigest now, os::sha256_of_open(file));
        if (tenancy.confined || now.sha256 == known->second.sha256) return now;
      }
      return context.vault->store(vault::Tier::amber, file);
    };
    auto seen = std::make_shared<FolderSight>();
    const Tree* known = before != nullptr && before->folder ? &before->folder->tree : nullptr;
    HF_TRY(seen->tree, read_tree(*place.object, context.folder.squad_facts.identity, digest, known));
    seen->comparison = compare(captured, seen->tree.manifest);
    HF_TRY(sight.digest, context.vault->store_bytes(vault::Tier::amber, manifest_text(seen->tree.manifest)));
    sight.facts = *place.facts;
    sight.folder = std::move(seen);
    return {};
  };
  auto looked = look();
  sight.archived = looked.ok();
  if (looked.ok()) return;
  sight.kind = "unverifiable";
  sight.reason = looked.refusal().message();
}

Result<ContentCheck> check_folder(Context& context, const Transition& transition, const Tenancy& tenancy,
                                  const Sight& sight) {
  if (sight.kind == "unverifiable") {
    const Json document = {{"status", "unverifiable"}, {"baseline_source", "manifest"}, {"reason", sight.reason}};
    return ContentCheck{document, true, "quarantine_ungated", {}};
  }
  if (sight.kind != "folder" || !sight.folder) return folder_is_gone(tenancy, sight);
  const Comparison& found = sight.folder->comparison;
  GatedWrites gated(context, transition, tenancy);
  std::map<std::string_view, std::size_t> counts;
  std::vector<std::pair<std::string_view, const Difference*>> changes;
  ContentCheck check;
  for (const Difference& difference : found.differences) {
    HF_TRY(const bool is_gated, gated.made(difference));
    const std::string_view how = is_gated ? "gated" : tenancy.confined ? "confined" : "ungated";
    ++counts[how];
    changes.emplace_back(how, &difference);
    if (how == "ungated") check.ungated.push_back(difference);
  }
  const bool diverged = !check.ungated.empty();
  check.mismatch = diverged || !found.unverifiable.empty();
  check.amber_kind = check.mismatch ? "quarantine_ungated" : "post_edit";
  check.document = {{"status", diverged         ? "mismatch"
                               : check.mismatch ? "unverifiable"
                                                : "match"},
                    {"baseline_source", "manifest"},
                    {"expected_sha256", tenancy.pre_write.sha256},
                    {"actual_sha256", sight.digest.sha256},
                    {"entries", sight.folder->tree.manifest.size()},
                    {"changed", named_changes(changes)},
                    {"gated", counts["gated"]},
                    {"ungated", counts["ungated"]},
                    {"confined", counts["confined"]}};
  if (changes.size() > kNamedMax) check.document["changed_total"] = changes.size();
  if (!found.unverifiable.empty()) {
    const auto end =
        found.unverifiable.begin() + static_cast<std::ptrdiff_t>(std::min(found.unverifiable.size(), kNamedMax));
    check.document["unverifiable"] = std::vector<std::string>(found.unverifiable.begin(), end);
    check.document["unverifiable_total"] = found.unverifiable.size();
  }
  return check;
}

Json kept_files(const std::vector<Difference>& differences) {
  Json files = Json::array();
  std::size_t total = 0;
  for (const Difference& difference : differences) {
    if (!difference.actual || difference.actual->kind != "file") continue;
    ++total;
    if (files.size() >= kFilesMax) continue;
    files.push_back({{"path", difference.path},
                     {"sha256", difference.actual->sha256},
                     {"byte_count", difference.actual->byte_count}});
  }
  return Json{{"files", std::move(files)}, {"files_total", total}};
}

}  // namespace holdfast::engine
