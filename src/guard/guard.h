// The guard: kernel-enforced write exclusion over one pinned file, and the exchange that replaces it under guard.
//
// Roles (first seed, section 5): G is the long-term guard, W pins the preimage, P the parent folder, T is the staged
// file, G' the guard of what was published. Guards::take makes G and P; stage() makes T; exchange() publishes it, with
// G' standing before the new object is visible.
//
// Calling sequence for a replacement, all by the engine's replace stage:
//   auto staged = guard.stage();  staged->write(bytes)…;  staged->seal(metadata…)   -- long, outside the transition
//   [transition] guard.check();  intent durable;  guard.exchange(*staged, name)     -- short
//   guard.settle_exchange()…
// Promises: see each function. enforcement() says what the kernel really does here, never more.
// Does not promise: that a later open is refused on a rung that diverts (it succeeds, on an object that has lost the
// name); that rename, unlink, link and metadata changes are stopped on rung kernel_lease (they are noticed).
// Threads: all functions of one Guard may be called from several threads; each is atomic against the guard's own
// break handling. Source: KERNEL.md, "rung 3"; fcntl(2) F_SETLEASE; inotify(7).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "guard/overlap.h"
#include "holdfast/result.h"
#include "os/file.h"
#include "os/handle.h"

namespace holdfast::guard {

enum class Operation { open_write, truncate, rename, unlink, link, create, metadata, mmap_store };
std::string_view name_of(Operation operation);

// os_lock of a tenancy record (CONTRACT section 2).
struct Enforcement {
  bool enforced = false;
  std::string mechanism = "none";  // win32_share_mode bpf_lsm immutable_flag kernel_lease none
  std::vector<Operation> denies;
  std::vector<Operation> diverts;
  std::vector<Operation> detects;
  std::string preexisting_writers = "unknown";  // excluded revoked unknown
  std::string fault;                            // a code of the catalogue, empty: none
  std::string reason;                           // always there where enforced is false
  std::uint64_t divert_max_bytes = 0;           // on kernel_lease: a larger file is not enforced

  Json to_json() const;
  static Enforcement from_json(const Json& value);
  static Enforcement none(std::string reason);
};

// Something that happened to a guarded file without asking.
struct Observation {
  std::string what;         // write_diverted name_replaced name_moved_away name_unlinked link_made metadata_changed
                            // guard_lost diverted_bytes_captured diverted_bytes_counted
                            // content_changed (a guarded file was emptied past its lease)
  std::string scope;        // file://project:/…
  std::uint64_t guard = 0;  // Guard::id() of whose it is: bytes of an orphan may come after the tenancy ended
  std::string fault;        // the fault that it means, or empty
  std::int64_t wall_us = 0;
  Json who;  // {"pid","command"} or null where the kernel did not tell
  Json facts = Json::object();
  // For diverted_bytes_captured: the orphan, open for reading and without writers; the engine stores it and lets go.
  std::shared_ptr<os::Handle> bytes;
};

// Where a guarded file is: the pinned parent folder (P) and the leaf in it.
struct Target {
  std::string scope;     // full canonical scope, for observations
  os::Handle parent;     // open folder, pinned
  std::string leaf;      // one name, at most 255 bytes
  std::string relative;  // path below the workspace root, for resolving again
};

// Owner, mode, access list, extended attributes, and times where `keep_times`.
struct Metadata {
  std::uint32_t mode = 0600;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::int64_t modified_ns = 0;
  std::int64_t accessed_ns = 0;
  std::vector<std::pair<std::string, std::string>> attributes;  // user.*, system.posix_acl_access, security.* …
};
Result<Metadata> metadata_of_open(const os::Handle& object);
// Applies and reads back; metadata_not_preservable where a part did not take.
Result<void> apply_metadata(const os::Handle& object, const Metadata& metadata, bool keep_times);

// T: new bytes, complete and flushed, without a name. Dropping it leaves nothing behind.
class StagedFile {
 public:
  virtual ~StagedFile() = default;
  virtual Result<void> write(std::string_view bytes) = 0;
  // Applies the metadata (nullopt: mode 0666 less the umask), flushes, closes the writing handle, takes G' on it where
  // the rung can, then hashes what a reader sees. Nothing can be written after it. The digest is of the staged bytes.
  virtual Result<ContentDigest> seal(const std::optional<Metadata>& metadata) = 0;
  virtual os::Identity identity() const = 0;  // after seal
};

struct Exchanged {
  os::Identity published;  // of T
  bool destination_existed = false;
  std::optional<os::Handle> displaced;  // what bore the name before, open for reading; its temporary name stands
  os::Identity displaced_identity;
  bool displaced_was_guarded = false;  // it is what the guard stood on, whatever diverts made of its identity
  std::string temporary_name;          // the name that the displaced object bears now
};

struct Verified {
  bool guard_identity_matches_published = false;
  bool guard_resolved_path_matches_scope = false;
  os::Identity at_name;  // unknown where nothing bears the name
  os::Handle object;     // what bears the name, freshly opened for reading; stands still like W
};

class Guard {
 public:
  virtual ~Guard() = default;

  virtual std::uint64_t id() const = 0;  // unique in this process, never 0
  virtual Enforcement enforcement() const = 0;

  // Before every act: finishes a pending divert, asks the kernel whether the guard stands, and compares name, identity,
  // links and metadata with what the guard expects. A refusal is one of the destination_* faults (effect none), and the
  // enforcement carries the fault from then on. An absent destination that is still absent is fine.
  virtual Result<void> check() = 0;

  // W: the guarded object, opened afresh for reading; nullopt where the destination is absent. Where the rung diverts,
  // a diverted writer waits until this handle is closed too, so what is read through it stands still (at most for
  // the kernel's lease-break-time: close it soon).
  virtual Result<std::optional<os::Handle>> open_preimage() = 0;
  // The object that the guard expects at the name; unknown where it expects none. A divert changes it.
  virtual os::Identity identity() const = 0;
  // Grows with each change of the guarded bytes that the guard can't exclude; a divert leaves it as it is, because the
  // new object's bytes are identical. A digest taken under the same token still holds.
  virtual std::uint64_t content_token() const = 0;

  // T, in the pinned parent. atomic_publish_unsupported where the file system stages no unnamed file.
  virtual Result<std::unique_ptr<StagedFile>> stage() = 0;

  // Gives T the fixed-length temporary name, then exchanges names with the destination (or, where the destination is
  // absent, gives it the name only if nothing bears it), and flushes the folder. From here the guard follows T.
  // `before_exchange` runs while the guard stands and nothing is visible but the temporary name; its refusal undoes
  // the temporary name. A refusal of the function itself means that nothing was published.
  virtual Result<Exchanged> exchange(StagedFile& staged, const std::string& temporary_name,
                                     const std::function<Result<void>()>& before_exchange) = 0;
  // The displaced object's temporary name goes (it has been identified, and its bytes are in the vault).
  virtual Result<void> drop_displaced(const Exchanged& exchanged) = 0;
  // After exchange: what a fresh walk finds at the name.
  virtual Result<Verified> verify(const os::Identity& published) = 0;
  // The guard takes what bears the name now as what it guards (after reconciliation), without writing anything.
  virtual Result<void> adopt_current() = 0;
  // The other guard of the same file while a server hands over.
  virtual Overlap& overlap() = 0;
};

// All guards of one server process: the break handler and the watch.
class Guards {
 public:
  struct Limits {
    std::uint64_t divert_max_bytes = 256ULL << 20U;     // a larger file is not enforced on kernel_lease
    std::uint64_t capture_max_bytes = 16ULL << 20U;     // of one orphan
    std::uint64_t capture_total_bytes = 256ULL << 20U;  // of one lease
    std::size_t capture_max_count = 1000;               // of one lease
    std::size_t orphans_open_max = 128;                 // of the process
    int divert_patience_ms = 0;                         // while no twin can be made; 0: nearly lease-break-time
    int capture_wait_ms = 600'000;                      // for a diverted writer to finish; then what is there is kept
  };

  virtual ~Guards() = default;
  // G and P on an existing file, or P alone on an absent destination. Never refuses for lack of enforcement: the
  // enforcement says what holds and why not more. Refuses where the object cannot be opened at all.
  virtual Result<std::unique_ptr<Guard>> take(Target target) = 0;
  // A guard that follows another process's (guard/overlap.h): it holds nothing until it is told of an object.
  virtual Result<std::unique_ptr<Guard>> take_beside(Target target, const Json& state) = 0;
  // Observations since the last call, oldest first; blocks up to limit_ms for the first one.
  virtual std::vector<Observation> wait_for_observations(int limit_ms) = 0;
  // The same without taking any: whoever records them takes them under the transition, so that no act on the scope
  // comes between the taking and the record.
  virtual bool wait_until_observed(int limit_ms) = 0;
  virtual void wake() = 0;  // ends both waits
  // Before the process ends: what diverted writers have written so far becomes observations, finished or not.
  virtual void settle_orphans() = 0;
};

// The strongest ladder of this platform. Linux: kernel_lease. `root` is the open workspace root: verify() walks from it
// without following links.
Result<std::unique_ptr<Guards>> make_guards(const os::Handle& root, Guards::Limits limits = {});

}  // namespace holdfast::guard
