// The two eras of the protocol: what each request has to bring, and the form of what it is answered.
//
// Legacy: `initialize` settles one of the older revisions for the process. Modern (2026-07-28): each request carries
// version and capabilities in its _meta, each result says its type. Source: MCP "Versioning"; MCP.md.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include "surfaces/mcp/message.h"

namespace holdfast::mcp {

constexpr std::string_view kModern = "2026-07-28";
constexpr std::string_view kNewestLegacy = "2025-11-25";

bool is_legacy_revision(std::string_view version);

struct Form {
  bool is_modern = false;
  std::string version;
  // What came with later revisions; an older client never sees it.
  bool has_structured_content() const { return version >= "2025-06-18"; }
  bool has_titles() const { return version >= "2025-06-18"; }
  bool has_annotations() const { return version >= "2025-03-26"; }
};

// The form that a request asks for, or why it cannot be answered. `negotiated` is empty before `initialize`.
std::variant<Form, Problem> form_of(const Message& request, const std::string& negotiated);

enum class Caching { none, stable, never };
// The result as its form wants it.
Json shaped(Json result, const Form& form, Caching caching);

// What this server can do, in that era.
Json capabilities(bool is_modern);
Json server_info(const Form& form);
std::string_view instructions();

}  // namespace holdfast::mcp
