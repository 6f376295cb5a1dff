// Vault: content-addressed bytes, in two tiers. Primary keeps what a guarded replacement may need again (preimages);
// Amber keeps what must not be lost (quarantined, diverted, displaced bytes, and the state at release).
//
// An entry is vault/<tier>/<sha256>, 0600, so that `sha256sum` checks the store without Holdfast. It is staged without
// a name, flushed, and linked under its digest only when it is complete; the folder is flushed. A crash leaves nothing.
// Promises: an entry is hashed again whenever it is read (vault_entry_corrupt, the file kept as it is); storing bytes
// that are there already writes nothing; nothing is ever removed here.
// Memory: constant, whatever the size. Threads: safe. Errors: state_persist_failed, file_unreadable, vault_entry_*.
// Source: CONTRACT sections 2 and 6.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "holdfast/result.h"
#include "os/file.h"
#include "os/handle.h"

namespace holdfast::vault {

enum class Tier { primary, amber };
std::string_view name_of(Tier tier);

class Vault {
 public:
  // Over an open .squad; makes its folders where missing.
  static Result<std::unique_ptr<Vault>> open(const os::Handle& squad);
  ~Vault();

  // Reads the object from its beginning to its end. `known` skips the copy where an entry of that digest is there.
  Result<ContentDigest> store(Tier tier, const os::Handle& object, const ContentDigest* known = nullptr,
                              const os::Progress& progress = {});
  Result<ContentDigest> store_bytes(Tier tier, std::string_view bytes);

  // The entry, opened for reading, after its bytes were hashed and found to be what its name says.
  Result<os::Handle> open_verified(Tier tier, const std::string& sha256) const;
  Result<os::Handle> open_verified_any(const std::string& sha256) const;  // Primary, then Amber
  // For a prune: the entry goes, and the folder is flushed. Its size; 0 where there is none.
  Result<std::uint64_t> remove(Tier tier, const std::string& sha256);
  bool contains(Tier tier, const std::string& sha256) const;

 private:
  struct State;
  explicit Vault(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::vault
