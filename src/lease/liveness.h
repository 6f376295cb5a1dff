// Whether the server that a tenancy names is alive: its record servers/PID.json, and the lock that it holds on it.
//
// The record: {"build","session","protocol":"holdfast.server.1","pid","process":{…},"started_at","wall_started_at"},
// published whole and then locked exclusively for the server's life. The kernel drops the lock with the process, in any
// form of death; a reused pid does not hold it (field reports B01, B02, B04, B07).
//
// Calling sequence: a server calls LivenessRecord::publish() once it holds servers/server.lock and before it serves;
// remove() on an orderly end. Anybody asks server_liveness().
// Promises: `alive` only where the record names exactly this process and session and its lock is held by somebody;
// `dead` only where os::liveness_of proves it (another boot, no such pid, a reused pid) and no lock speaks against it;
// everything else is `unknown`: a garbled record, another pid namespace, a server between publish and lock.
// Does not promise: that an unknown server is ever decided; its tenancies wait for their deadline.
// Threads: no state shared; LivenessRecord belongs to one thread. Errors: those of ControlFolder and LockFile.
#pragma once
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "os/control_folder.h"
#include "os/handle.h"
#include "os/lock_file.h"
#include "os/process.h"

namespace holdfast {

class LivenessRecord {
 public:
  // `squad` is the open .squad that `files` is over. server_already_serves where the record is locked by another.
  static Result<LivenessRecord> publish(os::ControlFolder& files, const os::Handle& squad, const std::string& session);

  const Json& document() const { return document_; }
  // The orderly end: the record goes first, then its lock.
  Result<void> remove(os::ControlFolder& files);

 private:
  LivenessRecord(os::LockFile lock, Json document) : lock_(std::move(lock)), document_(std::move(document)) {}

  std::optional<os::LockFile> lock_;
  Json document_;
};

// `process` and `session` as the tenancy recorded them.
os::Liveness server_liveness(const os::Handle& squad, os::ControlFolder& files, const os::ProcessIdentity& process,
                             const std::string& session);

// The record of a server that lives now (its lock is held); null where there is none that can be read.
Json living_server(const os::Handle& squad, os::ControlFolder& files);

// "servers/4711.json"
std::string liveness_record_path(std::int64_t pid);

}  // namespace holdfast
