// The SQLite receiver: one row changed under fence and version, in one IMMEDIATE transaction.
//
// Config: {"database": PATH, "table", "key_columns": [..], "version_column"}. Beside the rows it keeps holdfast_marks
// and holdfast_operations in the same database, so that a consistent backup carries all of it or none.
// Order in apply(): the row is read again and its version compared; the state before is captured; a conditional UPDATE
// changes exactly one row; the row is read back. After the commit the row is looked at once more from outside.
// Promises: rollback journal and WAL alike; a busy database is waited for (10 s), then receiver_unreachable with effect
// none; synchronous=FULL. The identity of the database file is compared with that of the first opening: another file
// under the name is receiver_unreachable, not another receiver.
// Does not promise: safety where this process itself opens and closes the database's files while the connection is
// open: that drops SQLite's POSIX locks (field report B117). The server runs it in a process of its own.
// Threads: one at a time. Errors: receiver_unreachable, record_version_changed, record_missing, request_malformed,
// receiver_outcome_unknown (a commit whose outcome SQLite did not tell).
// Source: first seed, section 8, "Fenced SQLite mutation"; sqlite.org "Locking And Concurrency", lang_transaction.
#pragma once
#include <memory>

#include "receivers/receiver.h"

namespace holdfast::receivers {

Result<std::unique_ptr<Receiver>> open_sqlite_receiver(const Json& config);

}  // namespace holdfast::receivers
