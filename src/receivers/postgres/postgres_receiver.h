// The PostgreSQL receiver: one row changed under fence and version, in one transaction.
//
// Config: {"connection": libpq connection string or URI, "table" (schema.table or table), "key_columns",
// "version_column"}. Beside the rows it keeps the tables holdfast_marks and holdfast_operations in the table's schema.
// There are two ways of a delivery, which deliver() judges alike; what is judged is compared under the mark's lock in
// the transaction of the effect in both, so that check and effect cannot be parted.
// Under locks: the mark's row is locked (SELECT ... FOR UPDATE) before anything is judged, and the whole delivery is
// one transaction of plain SQL in two round trips: BEGIN with everything that is judged (mark, operation, row); every
// change with the COMMIT and the look behind it. Between them the state before is captured. The server itself stops
// before the COMMIT where a change fails or the row does not read back.
// By procedures, from the second change of a set of columns on, where its role may make them: what is judged is read by
// a call that locks and begins nothing (of a row that this receiver changed last, the look behind that change stands
// for it), the state before is captured, and one more call locks the mark, compares all of it to the byte, changes,
// reads back, remembers, commits and looks. Where anything differs it changes nothing, and the delivery is judged anew
// under locks. Nobody waits for whoever is paused in between: a takeover goes through, and the paused one is refused.
// Both: no session state, no prepared statement, no advisory lock; correct behind a proxy that pools transactions
// (field report B122). Isolation (READ COMMITTED), synchronous_commit and lock_timeout are set in each. Promises and
// errors: those of the SQLite receiver. A commit whose answer never came is receiver_outcome_unknown. Where only the
// look behind a call's commit failed, the delivery answers as one that is repeated, which it is. Does not promise:
// anything where the server was told not to flush (fsync=off). Threads: one at a time. Source: CONTRACT section 5;
// PostgreSQL documentation, "Explicit Locking", "Transaction Management" (PL/pgSQL), libpq.
#pragma once
#include <memory>

#include "receivers/receiver.h"

namespace holdfast::receivers {

Result<std::unique_ptr<Receiver>> open_postgres_receiver(const Json& config);

}  // namespace holdfast::receivers
