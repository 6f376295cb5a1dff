// Invariants:
//   V1  a name in the vault is given only to bytes that are complete, hashed and flushed;
//   V2  a name is never taken away, and an object that bears one is never written to;
//   V3  bytes leave the vault only after they were hashed again.
#include "vault/vault.h"

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "base/fault_point.h"
#include "base/json.h"
#include "base/piece.h"
#include "os/unnamed_file.h"

namespace holdfast::vault {
namespace {

std::string path_of(Tier tier, const std::string& sha256) {
  return "vault/" + std::string(name_of(tier)) + "/" + printable(sha256);
}

// The vault's own writes fail as state_persist_failed, whatever the layer below calls them for other callers.
Refusal not_persisted(const Refusal& why) {
  if (why.code() == Code::atomic_publish_unsupported || why.code() == Code::workspace_insecure) return why;
  return Refusal(Code::state_persist_failed, "the vault could not keep the bytes: " + why.message(), why.details());
}

Refusal corrupt(Tier tier, const std::string& sha256, const std::string& what, Json details) {
  details["path"] = path_of(tier, sha256);
  details["sha256"] = sha256;
  return Refusal(Code::vault_entry_corrupt, path_of(tier, sha256) + " " + what, std::move(details));
}

Refusal missing(const std::string& sha256) {
  return Refusal(Code::vault_entry_missing, "the vault has no bytes of the digest " + printable(sha256),
                 Json{{"sha256", printable(sha256)}});
}

// Gives the next piece; an empty one is the end.
using Pieces = std::function<Result<std::string_view>()>;

}  // namespace

std::string_view name_of(Tier tier) { return tier == Tier::primary ? "primary" : "amber"; }

struct Vault::State {
  std::array<os::Handle, 2> folders;

  const os::Handle& folder(Tier tier) const { return folders[static_cast<std::size_t>(tier)]; }

  // The entry of that name as it lies there; nullopt where there is none. What is no regular file is corrupt.
  Result<std::optional<os::Handle>> open_entry(Tier tier, const std::string& sha256) const {
    if (!os::name_exists(folder(tier), sha256)) return std::optional<os::Handle>();
    auto opened = os::open_for_reading(folder(tier), sha256);
    if (opened.ok()) return std::optional<os::Handle>(std::move(opened).value());
    if (opened.refusal().code() != Code::state_unreadable) return std::move(opened).refusal();
    return corrupt(tier, sha256, "cannot be read: " + opened.refusal().message(), opened.refusal().details());
  }

  // Whether the bytes are there already. They are hashed: whoever hears `kept` may let go of the last good copy.
  Result<bool> keeps(Tier tier, const ContentDigest& digest) const {
    HF_TRY(const std::optional<os::Handle> entry, open_entry(tier, digest.sha256));
    if (!entry) return false;
    HF_TRY(const os::Facts facts, os::facts_of_open(*entry));
    if (facts.byte_count == digest.byte_count) {
      HF_TRY(const ContentDigest found, os::sha256_of_open(*entry));
      if (found.sha256 != digest.sha256) {
        return corrupt(tier, digest.sha256, "hashes to " + found.sha256, Json{{"actual_sha256", found.sha256}});
      }
      // Whoever linked it may have died before the folder was flushed; to the caller it is as good as just stored.
      HF_CHECK(os::flush(folder(tier)));
      return true;
    }
    return corrupt(tier, digest.sha256,
                   "has " + std::to_string(facts.byte_count) + " bytes where its digest is of " +
                       std::to_string(digest.byte_count),
                   Json{{"byte_count", facts.byte_count}, {"expected_byte_count", digest.byte_count}});
  }

  Result<void> publish(Tier tier, const os::Handle& staged, const ContentDigest& digest) const {
    if (auto flushed = os::flush(staged); !flushed) return not_persisted(flushed.refusal());
    HF_FAULT_POINT("vault_before_link");
    auto named = os::name_unnamed_file(staged, folder(tier), digest.sha256);
    if (!named) return not_persisted(named.refusal());
    HF_FAULT_POINT("vault_after_link");
    if (named.value()) return {};
    // Another thread or process was faster, or the name is planted: look at it as at any entry found.
    HF_TRY(const bool kept, keeps(tier, digest));
    if (kept) return {};
    return Refusal(Code::state_persist_failed, path_of(tier, digest.sha256) + " came and went while it was written");
  }

  Result<ContentDigest> store(Tier tier, const Pieces& next, const os::Progress& progress) const {
    auto staged = os::make_unnamed_file(folder(tier));
    if (!staged) return not_persisted(staged.refusal());
    Sha256 sha256;
    Fnv1a fnv1a;
    ContentDigest digest;
    for (;;) {
      HF_TRY(const std::string_view piece, next());
      if (piece.empty()) break;
      sha256.add(piece);
      fnv1a.add(piece);
      digest.byte_count += piece.size();
      if (auto written = os::write_all(staged.value(), piece); !written) return not_persisted(written.refusal());
      if (progress) progress(digest.byte_count);
    }
    digest.sha256 = sha256.hex();
    digest.fnv1a = fnv1a.hex();
    HF_TRY(const bool kept, keeps(tier, digest));
    if (!kept) HF_CHECK(publish(tier, staged.value(), digest));
    return digest;
  }
};

Vault::Vault(std::unique_ptr<State> state) : state_(std::move(state)) {}
Vault::~Vault() = default;

Result<std::unique_ptr<Vault>> Vault::open(const os::Handle& squad) {
  auto state = std::make_unique<State>();
  for (const Tier tier : {Tier::primary, Tier::amber}) {
    HF_TRY(state->folders[static_cast<std::size_t>(tier)],
           os::open_folder(squad, "vault/" + std::string(name_of(tier)), true));
  }
  return std::unique_ptr<Vault>(new Vault(std::move(state)));
}

Result<ContentDigest> Vault::store(Tier tier, const os::Handle& object, const ContentDigest* known,
                                   const os::Progress& progress) {
  if (known != nullptr && is_sha256_hex(known->sha256)) {
    HF_TRY(const bool kept, state_->keeps(tier, *known));
    if (kept) return *known;
  }
  Piece buffer;
  std::uint64_t offset = 0;
  const Pieces next = [&]() -> Result<std::string_view> {
    HF_TRY(const std::size_t count, os::read_at(object, offset, buffer.data(), buffer.size()));
    offset += count;
    return buffer.first(count);
  };
  return state_->store(tier, next, progress);
}

Result<ContentDigest> Vault::store_bytes(Tier tier, std::string_view bytes) {
  const ContentDigest digest{sha256_hex(bytes), fnv1a_hex(bytes), bytes.size()};
  HF_TRY(const bool kept, state_->keeps(tier, digest));
  if (kept) return digest;
  std::string_view rest = bytes;
  const Pieces next = [&]() -> Result<std::string_view> { return std::exchange(rest, std::string_view()); };
  return state_->store(tier, next, {});
}

Result<os::Handle> Vault::open_verified(Tier tier, const std::string& sha256) const {
  if (!is_sha256_hex(sha256)) return missing(sha256);  // and so no other text ever becomes a path
  HF_TRY(std::optional<os::Handle> entry, state_->open_entry(tier, sha256));
  if (!entry) return missing(sha256);
  HF_TRY(const ContentDigest found, os::sha256_of_open(*entry));
  if (found.sha256 == sha256) return std::move(*entry);
  return corrupt(tier, sha256, "hashes to " + found.sha256,
                 Json{{"actual_sha256", found.sha256}, {"byte_count", found.byte_count}});
}

Result<os::Handle> Vault::open_verified_any(const std::string& sha256) const {
  auto primary = open_verified(Tier::primary, sha256);
  if (primary.ok() || primary.refusal().code() == Code::workspace_insecure) return primary;
  auto amber = open_verified(Tier::amber, sha256);
  // A corrupt entry says more than a missing one.
  if (!amber.ok() && amber.refusal().code() == Code::vault_entry_missing) return primary;
  return amber;
}

Result<std::uint64_t> Vault::remove(Tier tier, const std::string& sha256) {
  if (!is_sha256_hex(sha256)) return missing(sha256);
  HF_TRY(const std::optional<os::Handle> entry, state_->open_entry(tier, sha256));
  if (!entry) return std::uint64_t{0};
  HF_TRY(const os::Facts facts, os::facts_of_open(*entry));
  HF_CHECK(os::remove_name(state_->folder(tier), sha256));
  HF_CHECK(os::flush(state_->folder(tier)));
  return facts.byte_count;
}

bool Vault::contains(Tier tier, const std::string& sha256) const {
  return is_sha256_hex(sha256) && os::name_exists(state_->folder(tier), sha256);
}

}  // namespace holdfast::vault
