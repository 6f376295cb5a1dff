// publish: from a sealed staged file to a verified replacement, or to one of the six publish faults.
//
// A StagedFile that was sealed is the only thing that publish takes, so an unverified publish does not compile.
// Calling sequence (under the transition, the intent durable): publish(guard, staged, plan) -> Publication.
//   refused            nothing was published (the caller settles the intent as not_published)
//   fault.empty()      published and verified: identity, content, path, displacement (first seed, section 5)
//   fault              published or not, as rename_completed says; verification failed. Nothing is rolled back.
// The displaced object still bears plan.temporary_name when publish returns: the caller keeps its bytes where they are
// foreign, and only then drops the name.
// Source: first seed, sections 5 and 6, Exhibits 3 and 4; CONTRACT section 4.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "guard/guard.h"
#include "replace/intent.h"

namespace holdfast::replace {

struct Plan {
  std::string scope;
  std::string path;  // display form, project:/…
  ContentDigest planned;
  Preimage preimage;
  std::uint64_t preimage_links = 0;
  std::string temporary_name;
  // The place where an open object is now, in display form; nullopt where it cannot be told or is the scope itself.
  std::function<std::optional<std::string>(const os::Handle&)> displaced_to;
};

struct Fault {
  Code code = Code::destination_unverifiable;
  std::string error;
  bool rename_completed = false;
  std::optional<std::string> preimage_displaced_to;
};

struct Publication {
  guard::Exchanged exchanged;
  guard::Verified verified;
  bool foreign_displaced = false;  // what bore the name was not the preimage
  std::optional<Fault> fault;
};

Result<Publication> publish(guard::Guard& guard, guard::StagedFile& staged, const Plan& plan,
                            const os::Handle* preimage);

// Exhibit 3.
Json success_document(const Plan& plan, const os::Identity& published, const std::string& operation_id,
                      const std::string& generation);

// Exhibit 4: the reconciliation record of a fault.
Json fault_record(const Plan& plan, const Fault& fault, const std::string& id, std::int64_t pid, const std::string& at);

}  // namespace holdfast::replace
