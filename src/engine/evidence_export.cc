#include "engine/evidence_export.h"

#include "engine/arguments.h"
#include "evidence/package.h"

namespace holdfast::engine {
namespace {

using Files = std::map<std::string, std::string>;

Result<Files> segments(Context& context) {
  HF_TRY(const auto names, context.files->list("evidence"));
  Files files;
  for (const std::string& name : names) {
    if (!name.starts_with("log-") || !name.ends_with(".jsonl")) continue;
    HF_TRY(auto bytes, context.files->read("evidence/" + name));
    if (bytes) files[name] = std::move(*bytes);
  }
  return files;
}

}  // namespace

Result<Json> evidence_export(Context& context, const Json& json) {
  HF_TRY(const std::string to, Arguments(json).text("to"));
  if (!to.starts_with('/')) return usage("to is no absolute path");
  Files files;
  evidence::Verification verification;
  {
    HF_TRY(const Held held, context.mutex->acquire());  // no event is half appended while it is copied
    HF_TRY(verification, context.chain->verify());
    HF_TRY(files, segments(context));
  }
  const Json facts = {{"made_at", format_wall(context.clock.now().wall_us)},
                      {"workspace_id", context.workspace_id()},
                      {"head", verification.head},
                      {"unknown",
                       {"the decisions behind events that carry no inputs: only those on commands carry theirs",
                        "whether the workspace was rolled back as a whole before: keep heads elsewhere"}}};
  HF_CHECK(evidence::write_package(to, {.files = std::move(files), .facts = facts}));
  return Json{{"exported", to}, {"chain", verification.to_json()}};
}

}  // namespace holdfast::engine
