// Guarded replacement: require_write_binding, staging, the exchange under guard, verification, settling
// (CONTRACT section 4). `write` streams its content; `edit` computes it from the preimage; `reconcile resolve
// --restore` takes it from the vault.
#pragma once
#include <functional>

#include "engine/arguments.h"
#include "engine/context.h"

namespace holdfast::engine {

struct Replacement {
  TenancyKeys keys;
  std::string scope_text;
  std::string current_folder;
  std::string operation_id;             // made where the caller gave none
  std::string family = "write";         // write edit restore
  std::string precondition;             // "" none, "absent", or a SHA-256
  std::string expected_payload_sha256;  // "" unknown before
  bool allow_hard_links = false;
  bool restores_reconciliation = false;  // the one write that reconciliation_required lets through
  // Writes the new bytes; the preimage is W, nullptr where the destination is absent. Returns the digest of the payload
  // that identifies the command: of the bytes for a write, of the replacements for an edit.
  std::function<Result<std::string>(guard::StagedFile& staged, const os::Handle* preimage)> produce;
  std::function<bool()> sender_is_gone;
  // Under the transition of the publish, before it: what else has to hold.
  std::function<Result<void>()> revalidate = {};
};

Result<Json> replace_guarded(Context& context, const Replacement& replacement);

Result<Json> write(Context& context, const Json& arguments, ContentSource* content, const ProgressReport& progress);
Result<Json> edit(Context& context, const Json& arguments);

// Exact replacements on `bytes`, each `old` found exactly once in the original: edit_no_match, edit_ambiguous.
Result<std::string> apply_edits(const std::string& bytes,
                                const std::vector<std::pair<std::string, std::string>>& edits);

}  // namespace holdfast::engine
