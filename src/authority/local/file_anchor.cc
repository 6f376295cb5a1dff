#include "authority/local/file_anchor.h"

#include "base/json.h"
#include "os/unnamed_file.h"

namespace holdfast::authority {
namespace {
constexpr std::string_view kProtocol = "holdfast.anchor.1";

Refusal unestablished(const std::string& path, const std::string& why) {
  return Refusal(Code::generation_anchor_rollback, "generation_anchor_rollback: the anchor " + path + " " + why,
                 Json{{"anchor", path}});
}
}  // namespace

Result<std::unique_ptr<FileAnchor>> FileAnchor::open(const std::string& path, const std::string& workspace_id) {
  const std::size_t slash = path.rfind('/');
  if (path.empty() || path[0] != '/' || slash + 1 == path.size()) {
    return Refusal(Code::usage, "usage: an anchor is the absolute path of a file: " + printable(path));
  }
  auto anchor = std::make_unique<FileAnchor>();
  anchor->path_ = path;
  anchor->folder_path_ = slash == 0 ? "/" : path.substr(0, slash);
  anchor->leaf_ = path.substr(slash + 1);
  anchor->workspace_id_ = workspace_id;
  return anchor;
}

// Reached when it is needed: what does not ask for the anchor (status, read, release) goes on while its volume is away.
Result<void> FileAnchor::reach() {
  if (folder_) return {};
  auto folder = os::open_absolute_folder(folder_path_);
  if (!folder.ok()) return unestablished(path_, "cannot be reached: " + folder.refusal().message());
  HF_TRY(folder_, os::open_control_folder(*folder));
  return {};
}

Result<Generation> FileAnchor::read() {
  HF_CHECK(reach());
  const auto bytes = folder_->read(leaf_);
  if (!bytes.ok()) return unestablished(path_, "cannot be read: " + bytes.refusal().message());
  if (!*bytes) return unestablished(path_, "is gone");
  auto document = parse_json(**bytes);
  if (document && !document->is_object()) document.reset();
  const auto high_water = document ? exact_u64(document->value("high_water", Json())) : std::nullopt;
  if (!document || text_member(*document, "protocol") != kProtocol || !high_water) {
    return unestablished(path_, "is not what Holdfast writes");
  }
  if (text_member(*document, "workspace_id") != workspace_id_) return unestablished(path_, "is another workspace's");
  return Generation{*high_water};
}

Result<void> FileAnchor::put(Generation high_water) {
  HF_CHECK(reach());
  const Json document = {{"protocol", kProtocol}, {"workspace_id", workspace_id_}, {"high_water", high_water.text()}};
  auto published = folder_->publish(leaf_, dump_pretty(document) + "\n");
  if (published.ok()) return {};
  return Refusal(Code::generation_persist_failed,
                 "generation_persist_failed: the anchor " + path_ + ": " + published.refusal().message(),
                 Json{{"anchor", path_}});
}

Result<void> FileAnchor::raise(Generation high_water) {
  HF_TRY(const Generation known, read());
  return high_water > known ? put(high_water) : Result<void>();
}

Result<void> FileAnchor::establish(Generation high_water) {
  HF_CHECK(reach());
  const auto bytes = folder_->read(leaf_);
  const auto document = bytes.ok() && *bytes ? parse_json(**bytes) : std::nullopt;
  const std::string owner = document ? text_member(*document, "workspace_id") : "";
  if (!owner.empty() && owner != workspace_id_) return unestablished(path_, "is another workspace's");
  const auto known = read();
  return known.ok() && *known >= high_water ? Result<void>() : put(high_water);
}

Result<void> FileAnchor::create(Generation high_water) {
  HF_CHECK(reach());
  HF_TRY(const auto size, folder_->size(leaf_));
  if (!size) return put(high_water);
  return raise(high_water);
}

}  // namespace holdfast::authority
