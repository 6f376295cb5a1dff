#include "receivers/postgres/session.h"

#include <cstdlib>

#include "base/json.h"

namespace holdfast::receivers::postgres {
namespace {

// Object identifiers of built-in types, from pg_type.dat.
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kFloat4 = 700;
constexpr Oid kFloat8 = 701;

struct TextForm {
  std::optional<std::string> operator()(const Null&) const { return std::nullopt; }
  std::optional<std::string> operator()(std::int64_t number) const { return std::to_string(number); }
  std::optional<std::string> operator()(double number) const { return Json(number).dump(); }
  std::optional<std::string> operator()(const std::string& text) const { return text; }
  std::optional<std::string> operator()(const Blob& blob) const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "\\x";
    for (const char one : blob.bytes) {
      const auto byte = static_cast<unsigned char>(one);
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
    return text;
  }
};

Blob blob_of(const char* text) {
  std::size_t size = 0;
  unsigned char* bytes = PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size);
  Blob blob;
  if (bytes != nullptr) blob.bytes.assign(reinterpret_cast<const char*>(bytes), size);
  PQfreemem(bytes);
  return blob;
}

Refusal malformed_text() {
  return Refusal(Code::request_malformed, "request_malformed: PostgreSQL holds no text with a NUL");
}

// Parameters as libpq takes them. They travel as text.
struct Sent {
  std::vector<std::optional<std::string>> texts;
  std::vector<const char*> values;
  int count() const { return static_cast<int>(values.size()); }
};

Result<Sent> sent_form(const std::vector<Value>& parameters) {
  Sent sent;
  sent.texts.reserve(parameters.size());
  for (const Value& value : parameters) {
    HF_TRY(auto form, text_form(value));
    const auto& text = sent.texts.emplace_back(std::move(form));
    sent.values.push_back(text ? text->c_str() : nullptr);
  }
  return sent;
}

}  // namespace

std::string as_identifier(const std::string& identifier) {
  std::string text = "\"";
  for (const char one : identifier) {
    if (one == '"') text += '"';
    text += one;
  }
  return text + '"';
}

int Rows::affected() const { return std::atoi(PQcmdTuples(result_.get())); }

Result<std::optional<std::string>> text_form(const Value& value) {
  // It would end the text before its end, without a word.
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && text->find('\0') != std::string::npos) {
    return malformed_text();
  }
  return std::visit(TextForm{}, value);
}

Value value_of(Oid type, const std::string& text) {
  switch (type) {
    case kInt2:
    case kInt4:
    case kInt8: return static_cast<std::int64_t>(std::strtoll(text.c_str(), nullptr, 10));
    case kFloat4:
    case kFloat8: return std::strtod(text.c_str(), nullptr);
    case kBytea: return blob_of(text.c_str());
    default: return text;
  }
}

Value Rows::value(int column) const {
  if (PQgetisnull(result_.get(), 0, column) == 1) return Null{};
  return value_of(PQftype(result_.get(), column), text(column));
}

Result<std::unique_ptr<Session>> Session::open(const std::string& connection) {
  // The encoding is one of the parameters of a connection that a pooling proxy keeps; a SET would be session state.
  const char* const names[] = {"dbname", "client_encoding", nullptr};
  const char* const values[] = {connection.c_str(), "UTF8", nullptr};
  std::unique_ptr<Session> session(new Session(PQconnectdbParams(names, values, 1)));
  if (!session->is_connected()) return session->refusal("connect", "");
  PQsetNoticeProcessor(
      session->connection_.get(), [](void*, const char*) {}, nullptr);
  return session;
}

Refusal Session::refusal(const std::string& doing, const char* sqlstate) const {
  return Refusal(
      Code::receiver_unreachable,
      "receiver_unreachable: PostgreSQL could not " + doing + ": " + printable(PQerrorMessage(connection_.get())),
      Json{{"sqlstate", sqlstate}});
}

Result<void> Session::make_ready() {
  // Takes what came unasked, which is an end: its last words with the first, and the end itself with the second.
  for (int time = 0; time < 2 && is_connected(); ++time) static_cast<void>(PQconsumeInput(connection_.get()));
  if (is_connected() && PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return {};
  return connect_again();
}

Result<void> Session::connect_again() {
  PQreset(connection_.get());
  is_in_step_ = true;
  if (!is_connected()) return refusal("connect again", "");
  return {};
}

Result<Rows> Session::judged(PGresult* result, const std::string& sql) const {
  Rows rows(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return rows;
  const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return refusal("run `" + sql.substr(0, 40) + "`", sqlstate == nullptr ? "" : sqlstate);
}

Result<Rows> Session::run(const std::string& sql, const std::vector<Value>& parameters) {
  HF_TRY(const Sent sent, sent_form(parameters));
  return judged(
      PQexecParams(connection_.get(), sql.c_str(), sent.count(), nullptr, sent.values.data(), nullptr, nullptr, 0),
      sql);
}

std::vector<Result<Rows>> Session::run_together(const std::vector<Query>& queries) {
  std::vector<Sent> forms;
  std::optional<Refusal> why_no_more;
  for (const Query& query : queries) {
    auto form = sent_form(query.parameters);
    if (!form.ok()) {
      why_no_more = form.refusal();
      break;
    }
    forms.push_back(std::move(*form));
  }
  std::vector<Result<Rows>> answers;
  PGconn* connection = connection_.get();
  is_in_step_ = is_connected() && PQenterPipelineMode(connection) == 1;
  for (std::size_t at = 0; at < forms.size() && is_in_step_; ++at) {
    is_in_step_ = PQsendQueryParams(connection, queries[at].sql.c_str(), forms[at].count(), nullptr,
                                    forms[at].values.data(), nullptr, nullptr, 0) == 1;
  }
  is_in_step_ = is_in_step_ && PQpipelineSync(connection) == 1;
  if (!is_in_step_) why_no_more = refusal("send", "");
  for (std::size_t at = 0; at < forms.size() && is_in_step_; ++at) {
    answers.push_back(judged(PQgetResult(connection), queries[at].sql));
    PQclear(PQgetResult(connection));  // the end of this one's results
  }
  if (is_in_step_) {
    PGresult* end = PQgetResult(connection);
    is_in_step_ = PQresultStatus(end) == PGRES_PIPELINE_SYNC && PQexitPipelineMode(connection) == 1;
    PQclear(end);
  }
  while (answers.size() < queries.size()) answers.emplace_back(*why_no_more);
  return answers;
}

Result<Rows> Session::call(const std::string& procedure, const std::vector<std::optional<std::string>>& arguments) {
  std::string sql = "CALL " + procedure + "(";
  for (const auto& argument : arguments) {
    if (!argument) {
      sql += "NULL,";
      continue;
    }
    // It would be cut at a NUL, without a word.
    if (argument->find('\0') != std::string::npos) return malformed_text();
    const std::unique_ptr<char, void (*)(void*)> literal(
        PQescapeLiteral(connection_.get(), argument->data(), argument->size()), PQfreemem);
    if (!literal) return refusal("quote a text", "");
    sql.append(literal.get()).append(",");
  }
  return judged(PQexec(connection_.get(), sql.append("NULL)").c_str()), procedure);
}

bool Session::is_lost(const Refusal& why) const {
  const std::string sqlstate = why.details().value("sqlstate", "");
  return !is_connected() || sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate.starts_with("58");
}

}  // namespace holdfast::receivers::postgres
