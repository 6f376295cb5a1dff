// Evidence packages: a folder of plain files that somebody else can check, offline, without the workspace.
//
//   manifest.json    {"protocol":"holdfast.package.1","files":{NAME: SHA-256,…},"head","made_at","unknown":[…],…}
//   manifest.sha256  its digest, as `sha256sum -c` reads it
//   log-*.jsonl      the evidence chain, as it is in the workspace
//   decisions.json   [{"decision","inputs":{…}},…]; steps.json and others as the maker likes
//   PART/            a package of its own, which the manifest's "parts" names with the digest of its manifest
//
// Calling sequence: write_package() once, into a folder that it makes (or finds empty); verify_package() any time.
// Promises: verify_package changes nothing; it finds every changed byte, every missing and every extra file, a break of
// the chain, a decision that does not follow from its inputs, in decisions.json and in the chain's own events alike;
// what it cannot recompute is listed in "unknown".
// Does not promise: that the maker was honest: whoever rewrites the folder as a whole can make another one. Keep the
// digest in manifest.sha256 somewhere else to be sure. write_package does not flush to the disk.
// Errors: state_persist_failed (write); not_found (no such folder), evidence_chain_broken with details.first_break
// {"file","reason",…} and details.problems (verify).
#pragma once
#include <map>
#include <string>

#include "holdfast/result.h"

namespace holdfast::evidence {

inline constexpr const char* kPackageProtocol = "holdfast.package.1";

struct Package {
  std::map<std::string, std::string> files;  // by plain name
  Json facts = Json::object();               // of the manifest: "made_at", "unknown" and whatever else tells
  std::map<std::string, Package> parts = {};
};
Result<void> write_package(const std::string& folder_path, const Package& package);

// {"verified":true,"package","protocol","files":N,"manifest_sha256","chain":{…},"decisions":{"recomputed":N,
// "in_chain":N},"unknown":[…],"parts":{NAME: the same of a part}}. "unknown" has the parts' own, too, with their name.
Result<Json> verify_package(const std::string& folder_path);

}  // namespace holdfast::evidence
