// Answers for people. Each function takes the document that --json would print and gives text of at most 80 columns.
//
// Promises: pure; a member that is missing or of another type never throws, it is left out; nothing in a document can
// make the terminal do something. `now_us` is the wall clock, for distances in time.
#pragma once
#include <string>

#include "holdfast/result.h"

namespace holdfast::cli {

std::string human_answer(const std::string& verb, const Json& document, std::int64_t now_us);
std::string human_refusal(const Refusal& refusal);

// print_leases.cc
std::string human_leases(const Json& document, std::int64_t now_us);
std::string human_acquired(const Json& document, std::int64_t now_us);
std::string human_renewed(const Json& document, std::int64_t now_us);
std::string human_released(const Json& document);
// {"place","holders"}: whom an acquire waits for, in one line.
std::string waiting_line(const Json& waiting);

// "alive", "proven dead", "unknown"; "no server" of a lease that has no server to be alive.
std::string liveness_words(const std::string& liveness);

// print_status.cc
std::string human_status(const Json& document);

// print_records.cc
std::string human_reconcile_list(const Json& document);
std::string human_quarantine_list(const Json& document);
std::string human_timeline(const Json& document);

// print_acts.cc
std::string human_act(const Json& document);
std::string human_acts(const Json& document);
std::string human_committed(const Json& document);
std::string human_receivers(const Json& document);

// print_handoffs.cc
std::string human_handoffs(const Json& document);

// print_document.cc
std::string human_document(const Json& document);          // names and values, nested by indentation
std::string human_scalar(const Json& value);               // "-" for null, "yes", "no"
std::string display_scope(const Json& record);             // project:/a, session://b
std::string display_time(const std::string& wall);         // 2026-10-31 18:00:00 UTC
std::string words_of(std::string_view member);             // "byte_count" -> "byte count"
std::string joined(const Json& list);                      // scalars, by comma
std::string member(const Json& object, const char* name);  // as human_scalar, "" where absent

}  // namespace holdfast::cli
