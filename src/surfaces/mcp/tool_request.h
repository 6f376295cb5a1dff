// What the tools share: a call's arguments as a request to the server, and an answer as a document that fits a reply.
// Private to tool_runs.cc and act_runs.cc.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>

#include "surfaces/mcp/tool.h"

namespace holdfast::mcp {

Refusal wrong(const char* why);
Json taken(const Json& arguments, std::initializer_list<const char*> names);
Json keys(const ToolCall& call);
Result<Json> ask(const ToolCall& call, const std::string& verb, Json request, Repeat repeat,
                 const std::string* content = nullptr);
// Bytes that are given as text or as base64; nullopt: neither.
Result<std::optional<std::string>> bytes_of(const Json& object, const std::string& text, const std::string& base64);
// A name for the operation where the caller gave none: asked again after a lost answer, it is done once.
void name_operation(Json& request);
// The length of the longest beginning that ends between two characters.
std::size_t whole_characters(const std::string& bytes);
// The document, its long texts and lists cut (and "shortened": true) where a reply could not carry it.
Json fitting(const ToolCall& call, Json document);
// The list `member` of the verb's answer, from the call's offset on.
Result<Json> page_of_list(const ToolCall& call, const std::string& verb, const std::string& member,
                          Json request = Json::object());

}  // namespace holdfast::mcp
