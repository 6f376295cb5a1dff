// The command receiver: before a program is started for a command, the fence; after it, its outcome.
//
// Config: {"state": PATH}: an SQLite database of its own, made where it is missing, with holdfast_marks and
// holdfast_operations. An accepted command is remembered as started, in one transaction with the mark, before its
// program runs; settle() puts the outcome in the place of that.
// Calling sequence: deliver(); run the program; settle() with how it ended.
// Promises: one program for one operation id, whatever is delivered how often. A command that was started and never
// settled is receiver_outcome_unknown for ever: a person finds out what it did and settles it; nothing runs it again.
// Does not promise: that what the program does is undone, or that a program whose worker died has ended.
// Threads: one at a time. Durability: synchronous=FULL. Errors: receiver_unreachable, receiver_outcome_unknown.
// Source: CONTRACT section 5 ("command"); field report B127 (intent, effect, outcome).
#pragma once
#include <memory>

#include "receivers/receiver.h"

namespace holdfast::receivers {

Result<std::unique_ptr<Receiver>> open_command_receiver(const Json& config);

}  // namespace holdfast::receivers
