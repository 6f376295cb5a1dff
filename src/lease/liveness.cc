#include "lease/liveness.h"

#include "base/clock.h"
#include "base/json.h"
#include "os/file.h"

namespace holdfast {
namespace {

constexpr char kProtocol[] = "holdfast.server.1";
constexpr char kFolder[] = "servers";

struct Record {
  bool exists = false;
  bool held = false;  // its lock, by another open description
  Json document;      // null where it is garbled
};

bool is_whole(const Json& document) {
  return document.is_object() && text_member(document, "protocol") == kProtocol &&
         !text_member(document, "session").empty() && document.contains("process");
}

// The bytes are read from the very file whose lock is looked at, so that a record which is replaced meanwhile cannot
// lend its name to another's lock.
Record read_record(const os::Handle& squad, const std::string& path) {
  Record record;
  const auto file = os::LockFile::open_existing(squad, path);
  record.exists = !file || file->has_value();
  if (!file || !file->has_value()) return record;
  const os::LockFile& lock = **file;
  const auto held = lock.is_held_by_another(os::LockMode::exclusive);
  record.held = held && *held;
  const auto text = lock.read_note();
  auto document = text ? parse_json(*text) : std::nullopt;
  if (document && is_whole(*document)) record.document = std::move(*document);
  return record;
}

}  // namespace

std::string liveness_record_path(std::int64_t pid) {
  return std::string(kFolder) + "/" + std::to_string(pid) + ".json";
}

Result<LivenessRecord> LivenessRecord::publish(os::ControlFolder& files, const os::Handle& squad,
                                               const std::string& session) {
  const os::ProcessIdentity process = os::this_process();
  Json document = {{"build", HOLDFAST_VERSION},
                   {"session", session},
                   {"protocol", kProtocol},
                   {"pid", static_cast<std::uint64_t>(process.pid)},
                   {"process", process.to_json()},
                   {"started_at", process.started_at},
                   {"wall_started_at", format_wall(SystemClock().now().wall_us)}};
  const std::string path = liveness_record_path(process.pid);
  const std::string text = dump_ascii(document) + "\n";
  HF_CHECK(files.publish(path, text));
  HF_TRY(os::LockFile lock, os::LockFile::open(squad, path));
  HF_TRY(const bool locked, lock.try_lock(os::LockMode::exclusive));
  HF_TRY(const std::string read_back, lock.read_note());
  if (!locked || read_back != text) {
    return Refusal(Code::server_already_serves, "the liveness record of this process is held or replaced by another",
                   Json{{"path", path}, {"pid", static_cast<std::uint64_t>(process.pid)}});
  }
  return LivenessRecord(std::move(lock), std::move(document));
}

Result<void> LivenessRecord::remove(os::ControlFolder& files) {
  if (!lock_) return {};
  HF_CHECK(files.remove(liveness_record_path(static_cast<std::int64_t>(document_.at("pid").get<std::uint64_t>()))));
  lock_.reset();
  return {};
}

os::Liveness server_liveness(const os::Handle& squad, os::ControlFolder& files, const os::ProcessIdentity& process,
                             const std::string& session) {
  static_cast<void>(files);  // the record is read through its lock; see read_record
  const os::Liveness judged = os::liveness_of(process);
  const Record record = process.pid > 0 ? read_record(squad, liveness_record_path(process.pid)) : Record();
  const bool garbled = record.exists && record.document.is_null();
  const bool names_it = !garbled && record.exists && text_member(record.document, "session") == session &&
                        os::ProcessIdentity::from_json(record.document.at("process")) == process;
  if (names_it && record.held) {
    // Dead, and yet its lock is held: a child has it, or an image that it handed over to.
    return judged == os::Liveness::dead ? os::Liveness::unknown : os::Liveness::alive;
  }
  if (garbled && record.held) return os::Liveness::unknown;
  // Its lock is free, or there is none: not alive as a server, but only the end of the process proves it dead.
  return judged == os::Liveness::dead ? os::Liveness::dead : os::Liveness::unknown;
}

Json living_server(const os::Handle& squad, os::ControlFolder& files) {
  const auto names = files.list(kFolder);
  if (!names) return nullptr;
  for (const std::string& name : *names) {
    if (!name.ends_with(".json")) continue;
    Record record = read_record(squad, std::string(kFolder) + "/" + name);
    if (record.held && !record.document.is_null()) return std::move(record.document);
  }
  return nullptr;
}

}  // namespace holdfast
