// The PostgreSQL receiver: one row changed under fence and version, in one transaction.
//
// Config: {"connection": libpq connection string or URI, "table" (schema.table or table), "key_columns",
// "version_column"}. Beside the rows it keeps the tables holdfast_marks and holdfast_operations in the table's schema.
// The mark's row is locked (SELECT … FOR UPDATE) before anything is judged, so that check and effect cannot be parted,
// and the whole delivery is one transaction of plain SQL: no session state, no prepared statement, no advisory lock;
// it is correct behind a proxy that pools transactions (field report B122). Isolation (READ COMMITTED),
// synchronous_commit and lock_timeout are set in each. Two round trips a delivery: BEGIN with everything that is judged
// (mark, operation, row); every change with the COMMIT and the look behind it. Between them the state before is
// captured. The server itself stops before the COMMIT where a change fails or the row does not read back. Promises and
// errors: those of the SQLite receiver. A commit whose answer never came is receiver_outcome_unknown. Does not promise:
// anything where the server was told not to flush (fsync=off). Threads: one at a time. Source: CONTRACT section 5;
// PostgreSQL documentation, "Explicit Locking", libpq.
#pragma once
#include <memory>

#include "receivers/receiver.h"

namespace holdfast::receivers {

Result<std::unique_ptr<Receiver>> open_postgres_receiver(const Json& config);

}  // namespace holdfast::receivers
