#include "evidence/package.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "evidence/chain_verify.h"
#include "evidence/decision.h"

namespace holdfast::evidence {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kManifestDigest = "manifest.sha256";
constexpr const char* kDecisions = "decisions.json";
constexpr int kPartDepthMax = 3;
constexpr std::string_view kDecidedKinds = "command_";
constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find_first_not_of(kPlain) == std::string_view::npos;
}

std::string digest_line(const std::string& sha256) { return sha256 + "  " + kManifest + "\n"; }

// Plain files only: a link could lead anywhere, and a pipe would make us wait.
std::optional<std::string> bytes_of(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  return bytes;
}

Result<void> write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return Refusal(Code::state_persist_failed, "the package's file could not be written: " + printable(path.string()),
                 Json{{"path", printable(path.string())}});
}

// Segments by their number; the map's order is by text.
std::vector<std::string> segments_in(const std::vector<std::string>& names) {
  std::vector<std::string> segments;
  std::copy_if(names.begin(), names.end(), std::back_inserter(segments),
               [](const std::string& name) { return segment_number(name) != 0; });
  std::sort(segments.begin(), segments.end(), [](const std::string& one, const std::string& other) {
    return segment_number(one) < segment_number(other);
  });
  return segments;
}

// One pass over a package, which gathers every problem.
class Inspection {
 public:
  explicit Inspection(fs::path folder, int depth = 0) : folder_(std::move(folder)), depth_(depth) {}

  void run() {
    if (!read_manifest()) return;
    check_names();
    check_files();
    check_chain();
    check_decisions();
    check_parts();
  }

  Json report() const {
    Json found = {{"verified", problems_.empty()},
                  {"package", printable(folder_.string())},
                  {"protocol", kPackageProtocol},
                  {"files", names_.size()},
                  {"manifest_sha256", manifest_sha256_},
                  {"chain", chain_},
                  {"decisions", {{"recomputed", recomputed_}, {"in_chain", in_chain_}}},
                  {"unknown", unknown_},
                  {"first_break", problems_.empty() ? Json() : problems_.front()},
                  {"problems", problems_}};
    if (!parts_.empty()) found["parts"] = parts_;
    return found;
  }
  bool verified() const { return problems_.empty(); }
  std::string first_problem() const {
    return text_member(problems_.front(), "file") + ": " + text_member(problems_.front(), "reason");
  }

 private:
  void problem(const std::string& file, const std::string& reason) {
    problems_.push_back({{"file", printable(file)}, {"reason", reason}});
  }

  bool read_manifest() {
    const auto bytes = bytes_of(folder_ / kManifest);
    if (!bytes) return problem(kManifest, "it is missing or cannot be read"), false;
    manifest_sha256_ = sha256_hex(*bytes);
    if (bytes_of(folder_ / kManifestDigest) != digest_line(manifest_sha256_)) {
      problem(kManifest, "it hashes to " + manifest_sha256_ + ", manifest.sha256 says otherwise");
    }
    JsonProblem wrong;
    std::optional<Json> manifest = parse_json(*bytes, &wrong);
    if (!manifest) return problem(kManifest, wrong.text), false;
    if (text_member(*manifest, "protocol") != kPackageProtocol) return problem(kManifest, "another protocol"), false;
    const Json files = manifest->value("files", Json());
    if (!files.is_object()) return problem(kManifest, "it lists no files"), false;
    for (const auto& [name, sha256] : files.items()) {
      if (!is_plain_name(name) || !sha256.is_string()) return problem(kManifest, "a name that is none"), false;
      names_.push_back(name);
    }
    const Json parts = manifest->value("parts", Json::object());
    if (!parts.is_object()) return problem(kManifest, "its parts are no object"), false;
    for (const auto& [name, sha256] : parts.items()) {
      if (!is_plain_name(name) || !sha256.is_string()) return problem(kManifest, "a part that is none"), false;
      part_names_.push_back(name);
    }
    if (const Json unknown = manifest->value("unknown", Json()); unknown.is_array()) unknown_ = unknown;
    manifest_ = std::move(*manifest);
    return true;
  }

  // Nothing may lie in the folder that the manifest does not name: an extra file could pass for a part of it.
  void check_names() {
    std::error_code error;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      std::error_code kind_error;
      const bool plain = entry->symlink_status(kind_error).type() == fs::file_type::regular;
      if (is_part(name)) continue;
      if (!plain || kind_error)
        problem(name, "it is no plain file");
      else if (name != kManifest && name != kManifestDigest && !manifest_["files"].contains(name)) {
        problem(name, "the manifest does not name it");
      }
    }
    if (error) problem(".", "the folder cannot be read: " + error.message());
  }

  void check_files() {
    for (const std::string& name : names_) {
      const auto bytes = bytes_of(folder_ / name);
      if (!bytes)
        problem(name, "it is missing or cannot be read");
      else if (sha256_hex(*bytes) != manifest_["files"][name])
        problem(name, "it hashes to " + sha256_hex(*bytes));
    }
  }

  void check_chain() {
    Verifier verifier;
    for (const std::string& name : segments_in(names_)) {
      const auto bytes = bytes_of(folder_ / name);
      if (!bytes || !verifier.take_segment(name, *bytes)) break;
      check_events(name, *bytes);
    }
    chain_ = verifier.result().to_json();
    if (const auto& found = verifier.result().first_break) {
      problem(found->segment,
              "line " + std::to_string(found->line) + ", event " + std::to_string(found->seq) + ": " + found->reason);
    } else if (text_member(manifest_, "head") != verifier.result().head) {
      problem(kManifest, "head is not the last event's hash, " + verifier.result().head);
    }
  }

  // A decision that an event tells of has to follow from what the event says it was made from.
  void check_events(const std::string& segment, const std::string& bytes) {
    for (std::size_t begin = 0, end = 0; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto event = parse_json(std::string_view(bytes).substr(begin, end - begin));
      if (!event || !text_member(*event, "kind").starts_with(kDecidedKinds)) continue;
      const Json facts = event->value("facts", Json::object());
      if (!facts.is_object() || !facts.contains("decision") || !facts.contains("inputs")) continue;
      decided_[text_member(*event, "id")] = facts["decision"];
      const Recomputed found = recompute(facts);
      const std::string where = "event " + text_member(*event, "id") + ": " + found.reason;
      if (found.verdict == Recomputed::Verdict::agrees) ++in_chain_;
      if (found.verdict == Recomputed::Verdict::differs) problem(segment, where);
      if (found.verdict == Recomputed::Verdict::unknown) unknown_.push_back(where);
    }
  }

  bool is_part(const std::string& name) const {
    return std::find(part_names_.begin(), part_names_.end(), name) != part_names_.end();
  }

  void check_parts();

  void check_decisions() {
    if (!manifest_["files"].contains(kDecisions)) return;
    const auto decisions = parse_json(bytes_of(folder_ / kDecisions).value_or(""));
    if (!decisions || !decisions->is_array()) return problem(kDecisions, "not an array of decisions");
    for (std::size_t place = 0; place < decisions->size(); ++place) {
      const Json& said = (*decisions)[place];
      const Recomputed found = recompute(said);
      const std::string number = "decision " + std::to_string(place + 1) + ": ";
      const std::string where = number + found.reason;
      const auto told = decided_.find(said.is_object() ? text_member(said, "evidence") : std::string());
      if (told != decided_.end() && told->second != said.value("decision", Json())) {
        problem(kDecisions, number + "event " + told->first + " tells of another");
      }
      if (found.verdict == Recomputed::Verdict::agrees) ++recomputed_;
      if (found.verdict == Recomputed::Verdict::differs) problem(kDecisions, where);
      if (found.verdict == Recomputed::Verdict::unknown) unknown_.push_back(where);
    }
  }

  fs::path folder_;
  int depth_;
  Json manifest_;
  std::string manifest_sha256_;
  std::vector<std::string> names_;
  Json chain_;
  std::vector<std::string> part_names_;
  std::map<std::string, Json> decided_;  // by event
  std::size_t recomputed_ = 0;
  std::size_t in_chain_ = 0;
  Json unknown_ = Json::array();
  Json problems_ = Json::array();
  Json parts_ = Json::object();
};

// A part is verified as a package of its own; that it is the one that was put here, its manifest's digest tells.
void Inspection::check_parts() {
  for (const std::string& name : part_names_) {
    std::error_code error;
    if (fs::symlink_status(folder_ / name, error).type() != fs::file_type::directory) {
      problem(name, "it is missing, or no folder");
      continue;
    }
    if (depth_ >= kPartDepthMax) {
      problem(name, "parts within parts, deeper than a package goes");
      continue;
    }
    Inspection part(folder_ / name, depth_ + 1);
    part.run();
    for (const Json& found : part.problems_) {
      problem(name + "/" + text_member(found, "file"), text_member(found, "reason"));
    }
    if (part.manifest_sha256_ != text_member(manifest_["parts"], name)) {
      problem(name + "/" + kManifest, "the whole package's manifest names another");
    }
    for (const Json& what : part.unknown_) {
      unknown_.push_back(what.is_string() ? name + ": " + what.get<std::string>() : name);
    }
    parts_[name] = part.report();
  }
}

Result<void> check_plain_names(const Package& package) {
  const auto refused = [](const std::string& name) {
    return Refusal(Code::request_malformed, "no name for a file of a package: " + printable(name));
  };
  for (const auto& [name, bytes] : package.files) {
    if (!is_plain_name(name) || name == kManifest || name == kManifestDigest) return refused(name);
  }
  for (const auto& [name, part] : package.parts) {
    if (!is_plain_name(name) || package.files.contains(name) || name == kManifest) return refused(name);
    HF_CHECK(check_plain_names(part));
  }
  return {};
}

Result<void> make_empty_folder(const std::string& folder_path) {
  const fs::path folder(folder_path);
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && fs::exists(folder, error) && !fs::is_empty(folder, error) && !error) {
    return Refusal(Code::target_exists, "target_exists: " + printable(folder_path) + " is not empty",
                   Json{{"path", printable(folder_path)}});
  }
  if (error) {
    return Refusal(Code::state_persist_failed, "no empty folder can be had at " + printable(folder_path),
                   Json{{"path", printable(folder_path)}, {"os_error", error.value()}});
  }
  return {};
}

}  // namespace

Result<void> write_package(const std::string& folder_path, const Package& package) {
  HF_CHECK(check_plain_names(package));
  HF_CHECK(make_empty_folder(folder_path));
  const fs::path folder(folder_path);
  const auto& files = package.files;
  Json manifest = package.facts.is_object() ? package.facts : Json::object();
  if (!manifest.contains("unknown")) manifest["unknown"] = Json::array();
  manifest["protocol"] = kPackageProtocol;
  manifest["files"] = Json::object();
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) {
    manifest["files"][name] = sha256_hex(bytes);
    names.push_back(name);
    HF_CHECK(write_file(folder / name, bytes));
  }
  Verifier verifier;
  for (const std::string& name : segments_in(names)) {
    if (!verifier.take_segment(name, files.at(name))) break;
  }
  manifest["head"] = verifier.result().head;
  for (const auto& [name, part] : package.parts) {
    HF_CHECK(write_package((folder / name).string(), part));
    manifest["parts"][name] = sha256_hex(bytes_of(folder / name / kManifest).value_or(""));
  }
  const std::string text = dump_pretty(manifest) + "\n";
  HF_CHECK(write_file(folder / kManifest, text));
  return write_file(folder / kManifestDigest, digest_line(sha256_hex(text)));
}

Result<Json> verify_package(const std::string& folder_path) {
  std::error_code error;
  if (!fs::is_directory(fs::path(folder_path), error)) {
    return Refusal(Code::not_found, "no evidence package at " + printable(folder_path),
                   Json{{"path", printable(folder_path)}});
  }
  Inspection inspection{fs::path(folder_path)};
  inspection.run();
  if (inspection.verified()) return inspection.report();
  return Refusal(Code::evidence_chain_broken, "the package does not verify: " + inspection.first_problem(),
                 inspection.report());
}

}  // namespace holdfast::evidence
