// What each method answers. How requests come and go is in conversation.cc.
#include <algorithm>

#include "base/json.h"
#include "server/adoption_errors.h"
#include "surfaces/mcp/conversation.h"
#include "surfaces/mcp/progress.h"
#include "surfaces/mcp/resources.h"

namespace holdfast::mcp {
namespace {

Problem bad_params(const std::string& why) { return Problem{kInvalidParams, why, Json(), Json()}; }

Json described(const Tool& tool, const Form& form) {
  Json entry = {{"name", tool.name}, {"description", tool.description}, {"inputSchema", input_schema(tool)}};
  if (form.has_titles()) entry["title"] = tool.title;
  if (form.has_structured_content()) entry["outputSchema"] = output_schema(tool);
  if (form.has_annotations()) {
    entry["annotations"] = {{"title", tool.title},
                            {"readOnlyHint", tool.hints.read_only},
                            {"destructiveHint", tool.hints.destructive},
                            {"idempotentHint", tool.hints.idempotent},
                            {"openWorldHint", false}};
  }
  return entry;
}

Json tool_result(const Json& document, bool is_error, const Form& form) {
  Json result = {{"content", {{{"type", "text"}, {"text", dump_ascii(document)}}}}};
  if (form.has_structured_content()) result["structuredContent"] = document;
  if (is_error) result["isError"] = true;
  return result;
}

// A refusal that would not fit loses its details; what is left of a message that is too long itself still says why.
Json refusal_document(const Refusal& refusal, std::size_t limit) {
  Json document = refusal.to_json();
  if (reply_size(document) > limit) document["error"]["details"] = Json{{"shortened", true}};
  if (reply_size(document) > limit) document["error"]["message"] = refusal.message().substr(0, kProblemTextMax);
  return document;
}

Problem resource_problem(const Refusal& refusal, const std::string& uri, const Form& form) {
  if (refusal.code() == Code::not_found) {
    return Problem{form.is_modern ? kInvalidParams : kResourceNotFound, "Resource not found",
                   Json{{"uri", printable(uri.substr(0, 1000))}}, Json()};
  }
  return Problem{kInternalError, refusal.message(), refusal.to_json(), Json()};
}

}  // namespace

Outcome Conversation::answer_at_once(const Message& request, const Form& form) {
  const std::string& method = request.method;
  const auto listing = [&](const char* member, Json list) -> Outcome {
    if (request.params.contains("cursor")) return bad_params("no such cursor: everything is on the first page");
    return shaped(Json{{member, std::move(list)}}, form, Caching::stable);
  };
  if (method == "tools/list") return list_tools(request.params, form);
  if (method == "resources/list") return listing("resources", resource_list());
  if (method == "resources/templates/list") return listing("resourceTemplates", resource_template_list());
  if (method == "squad/lease_adopt") {
    if (!request.params.contains("secret") || !request.params["secret"].is_string()) {
      return bad_params("secret is missing");
    }
    const Json error = adoption_not_expected();
    return Problem{error["code"], error["message"], error.value("data", Json()), Json()};
  }
  if (form.is_modern && method == "server/discover") {
    return shaped(
        Json{{"supportedVersions", {kModern}}, {"capabilities", capabilities(true)}, {"instructions", instructions()}},
        form, Caching::stable);
  }
  if (!form.is_modern && method == "initialize") return initialize(request.params);
  if (!form.is_modern && method == "ping") return Json::object();
  if (!form.is_modern && method == "resources/unsubscribe") {
    if (text_member(request.params, "uri").empty()) return bad_params("uri is missing");
    watch_.stop_listening(Json(), text_member(request.params, "uri"));
    return Json::object();
  }
  return Problem{kMethodNotFound, "no such method: " + printable(method.substr(0, 200)), Json(), Json()};
}

Outcome Conversation::initialize(const Json& params) {
  const std::string asked = text_member(params, "protocolVersion");
  if (asked.empty()) return bad_params("protocolVersion is missing");
  for (const char* member : {"capabilities", "clientInfo"}) {
    if (params.contains(member) && !params[member].is_object())
      return bad_params(std::string(member) + " is no object");
  }
  negotiated_ = is_legacy_revision(asked) ? asked : std::string(kNewestLegacy);
  return Json{{"protocolVersion", negotiated_},
              {"capabilities", capabilities(false)},
              {"serverInfo", server_info(Form{false, negotiated_})},
              {"instructions", instructions()}};
}

Outcome Conversation::list_tools(const Json& params, const Form& form) {
  if (params.contains("cursor")) return bad_params("no such cursor: everything is on the first page");
  Json list = Json::array();
  for (const Tool& tool : tools()) list.push_back(described(tool, form));
  return shaped(Json{{"tools", std::move(list)}}, form, Caching::stable);
}

void Conversation::call_tool(const Message& request, const Form& form, const AnswersPtr& answers,
                             Cancellation& cancellation) {
  const std::string name = text_member(request.params, "name");
  const Tool* tool = find_tool(name);
  const Json arguments = request.params.value("arguments", Json::object());
  const auto refuse = [&](const std::string& why) {
    end(request, cancellation);
    reply(request, answers, bad_params(why));
  };
  if (tool == nullptr) return refuse("no such tool: " + printable(name.substr(0, 200)));
  if (!arguments.is_object()) return refuse("arguments is no object");
  // Not through `answers`: the answer to a batch is no place for what is to be seen before it.
  Progress progress(request.params, [&](const Json& message) { stream_->send(message); });
  const ProgressReport report = progress.report();
  const auto run = [&]() -> Result<Json> {
    HF_CHECK(check_arguments(*tool, arguments));
    return tool->run({arguments, link_, cancellation, report, answers->limit(), doctor_});
  };
  const Result<Json> answer = run();
  if (cancellation.is_cancelled()) return;
  end(request, cancellation);
  const Json document = answer.ok() ? *answer : refusal_document(answer.refusal(), answers->limit());
  const bool is_told = reply(request, answers, shaped(tool_result(document, !answer.ok(), form), form, Caching::none));
  // A lease that nobody was told of would be nobody's until its deadline.
  if (!is_told && answer.ok() && tool->name == "lease_acquire") link_.give_back(*answer);
}

Outcome Conversation::read_resource_of(const Json& params, const Form& form, Cancellation& cancellation,
                                       std::size_t limit) {
  const std::string uri = text_member(params, "uri");
  if (uri.empty()) return bad_params("uri is missing");
  auto document = read_resource(link_, uri, cancellation);
  if (!document.ok()) return resource_problem(document.refusal(), uri, form);
  // A list that a reply cannot carry is told in part, and says so; lease_list has pages.
  while (reply_size(*document) > limit && document->contains("leases") && (*document)["leases"].size() > 1) {
    Json& leases = (*document)["leases"];
    leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(leases.size() / 2), leases.end());
    (*document)["shortened"] = true;
  }
  const Json contents = {{{"uri", uri}, {"mimeType", "application/json"}, {"text", dump_ascii(*document)}}};
  return shaped(Json{{"contents", contents}}, form, Caching::never);
}

Outcome Conversation::subscribe(const Message& request) {
  const std::string uri = text_member(request.params, "uri");
  if (uri.empty()) return bad_params("uri is missing");
  Cancellation never;
  const auto found = read_resource(link_, uri, never);
  if (!found.ok()) return resource_problem(found.refusal(), uri, Form{});
  watch_.listen(Json(), {uri}, [] {});
  return Json::object();
}

void Conversation::listen(const Message& request, const AnswersPtr& answers, const Cancellation& cancellation) {
  const Json filter = request.params.value("notifications", Json());
  const Json wanted = filter.is_object() ? filter.value("resourceSubscriptions", Json::array()) : Json();
  const bool is_filter =
      wanted.is_array() && std::all_of(wanted.begin(), wanted.end(), [](const Json& uri) { return uri.is_string(); });
  if (!is_filter) {
    return static_cast<void>(reply(request, answers, bad_params("notifications is no filter of a subscription")));
  }
  // Lists of tools and resources never change within a process: only what can happen is agreed to.
  std::vector<std::string> uris;
  for (const Json& uri : wanted) {
    Cancellation never;
    if (read_resource(link_, uri.get<std::string>(), never).ok()) uris.push_back(uri.get<std::string>());
  }
  Json agreed = Json::object();
  if (!uris.empty()) agreed["resourceSubscriptions"] = uris;
  const bool is_new = watch_.listen(request.id, uris, [&] {
    stream_->send(notification_message(
        "notifications/subscriptions/acknowledged",
        Json{{"_meta", {{"io.modelcontextprotocol/subscriptionId", request.id}}}, {"notifications", agreed}}));
  });
  if (!is_new) return static_cast<void>(reply(request, answers, Problem{kInvalidRequest, kIdInUse, Json(), Json()}));
  // cancel() sets this before it looks for the subscription: one of the two sees the other.
  if (cancellation.is_cancelled()) watch_.stop_listening(request.id);
}

}  // namespace holdfast::mcp
