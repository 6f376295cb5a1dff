// Comparing what is there with what the guard expects. Whatever woke it, only this decides.
#include "guard/linux/guarded_file.h"
#include "guard/linux/place.h"

namespace holdfast::guard {
namespace {

// Owner, mode, access list and attributes as one comparable text; the times are compared apart.
std::string attributes_text(const os::Handle& object) {
  const auto metadata = metadata_of_open(object);
  if (!metadata.ok()) return "";
  std::string text;
  for (const auto& [name, value] : metadata->attributes) {
    text += name + '=' + std::to_string(value.size()) + ':' + value + ';';
  }
  return text;
}

Json metadata_facts(const os::Facts& facts) {
  return Json{{"mode", facts.mode}, {"user", facts.user}, {"group", facts.group}, {"modified_ns", facts.modified_ns}};
}

Json identity_or_null(const os::Identity& identity) { return identity.known() ? identity.to_json() : Json(nullptr); }

}  // namespace

void GuardedFile::look() {
  if (target_.leaf.empty()) return;
  look_at_parent();
  look_at_object();
  look_at_name();
}

void GuardedFile::look_at_parent() {
  if (parent_redirected_) return;
  auto parent = walk_to_parent(shared_->root, target_.relative);
  Code code = Code::destination_parent_redirected;
  if (parent.ok()) {
    const auto facts = os::facts_of_open(*parent);
    if (facts.ok() && facts->identity == parent_identity_) return;
    if (!facts.ok()) code = Code::destination_parent_unverifiable;
  } else {
    code = parent.refusal().code();
  }
  parent_redirected_ = true;
  set_fault(code, "the folder of the leased file is not where it was leased");
  observe("name_moved_away", std::string(facts_of(code).name), Json{{"what", "parent_folder"}});
}

void GuardedFile::look_at_object() {
  if (!object_) return;
  const auto now = os::facts_of_open(object_);
  if (!now.ok()) return;
  const os::Facts before = expected_;
  const std::string attributes = attributes_text(object_);
  if (leased_ && now->byte_count != before.byte_count) {
    // Under a standing lease only open(O_RDONLY|O_TRUNC) does this.
    ++token_;
    set_fault(Code::destination_content_diverged, "the guarded file was emptied past the lease");
    observe("content_changed", "destination_content_diverged",
            Json{{"from", before.byte_count}, {"to", now->byte_count}});
  }
  if (now->link_count > before.link_count) { observe("link_made", "", Json{{"link_count", now->link_count}}); }
  const bool times_changed = leased_ && now->byte_count == before.byte_count && now->modified_ns != before.modified_ns;
  if (now->mode != before.mode || now->user != before.user || now->group != before.group || times_changed ||
      attributes != expected_attributes_) {
    observe("metadata_changed", "",
            Json{{"from", metadata_facts(before)},
                 {"to", metadata_facts(*now)},
                 {"attributes_changed", attributes != expected_attributes_}});
  }
  const os::Identity identity = expected_.identity;
  expected_ = *now;
  expected_.identity = identity;
  expected_attributes_ = attributes;
}

void GuardedFile::look_at_name() {
  const auto at = facts_at(target_.parent, target_.leaf);
  if (!at.ok()) {
    set_fault(Code::destination_parent_unverifiable, at.refusal().message());
    return;
  }
  const os::Identity found = at->has_value() ? (*at)->identity : os::Identity();
  if (found == seen_at_name_) return;
  seen_at_name_ = found;
  if (found == expected_.identity) return;  // put back; the fault stays until somebody decides
  std::string what = "name_replaced";
  if (!found.known()) what = expected_.link_count == 0 ? "name_unlinked" : "name_moved_away";
  ++token_;
  set_fault(Code::destination_identity_changed, what == "name_replaced" ? "another object bears the leased name"
                                                : what == "name_unlinked"
                                                    ? "the leased name was unlinked"
                                                    : "the guarded file was moved away from the leased name");
  observe(what, "destination_identity_changed",
          Json{{"expected", identity_or_null(expected_.identity)}, {"found", identity_or_null(found)}});
}

void GuardedFile::expect_as_it_is() {
  expected_ = os::Facts();
  expected_attributes_.clear();
  if (!object_) return;
  if (const auto facts = os::facts_of_open(object_); facts.ok()) expected_ = *facts;
  expected_attributes_ = attributes_text(object_);
}

void GuardedFile::observe(const std::string& what, const std::string& fault, Json facts,
                          std::shared_ptr<os::Handle> bytes) {
  Observation observation;
  observation.what = what;
  observation.scope = target_.scope;
  observation.guard = id_;
  observation.fault = fault;
  observation.facts = std::move(facts);
  observation.bytes = std::move(bytes);
  shared_->observations.push(std::move(observation));
}

// The first fault stays: what follows from it says less.
void GuardedFile::set_fault(Code code, const std::string& text) {
  if (!fault_.empty()) return;
  fault_ = std::string(facts_of(code).name);
  fault_text_ = text;
}

Result<void> GuardedFile::refuse_where_faulted() const {
  if (ended_) return Refusal(Code::destination_guard_lost, "the guard has ended").with_effect(Effect::none);
  if (fault_.empty()) return {};
  const CodeFacts* code = facts_named(fault_);
  return Refusal(code == nullptr ? Code::destination_unverifiable : code->code, fault_text_,
                 Json{{"scope", target_.scope},
                      {"expected", identity_or_null(expected_.identity)},
                      {"found", identity_or_null(seen_at_name_)}})
      .with_effect(Effect::none);
}

Result<void> GuardedFile::check() {
  const std::lock_guard lock(turn_);
  if (!ended_ && settle_break() == Break::stuck) {
    return Refusal(Code::destination_guard_lost, "a writer waits and cannot be diverted yet: " + break_problem_)
        .with_effect(Effect::none);
  }
  if (!ended_) look();
  return refuse_where_faulted();
}

Result<Verified> GuardedFile::verify(const os::Identity& published) {
  const std::lock_guard lock(turn_);
  os::Handle still;
  if (!ended_ && object_ && expected_.kind == os::Kind::regular) { HF_TRY(still, open_holding_still()); }
  auto walked = walk_to_parent(shared_->root, target_.relative);
  // A link or nothing where the folder was: the scope's path no longer leads to what is guarded, and that is known.
  if (!walked.ok() && walked.refusal().code() == Code::destination_parent_redirected) return Verified{};
  HF_TRY(const os::Handle parent, std::move(walked));
  HF_TRY(const os::Facts parent_facts, os::facts_of_open(parent));
  auto at = open_at(parent, target_.leaf);
  if (!at.ok()) return Refusal(Code::destination_unverifiable, at.refusal().message(), at.refusal().details());
  if (fault_ == facts_of(Code::destination_unverifiable).name) {
    return Refusal(Code::destination_unverifiable, fault_text_);
  }
  Verified verified;
  verified.guard_resolved_path_matches_scope = parent_facts.identity == parent_identity_;
  if (at->has_value()) {
    verified.at_name = (*at)->facts.identity;
    const bool is_guarded = still && verified.at_name == expected_.identity;
    verified.object = is_guarded ? std::move(still) : std::move((*at)->object);
    // A divert since the publish has put a twin in the place of what was published.
    verified.guard_identity_matches_published =
        verified.at_name == expected_.identity && (published == expected_.identity || published == origin_);
  }
  return verified;
}

}  // namespace holdfast::guard
