// Read leases of the kernel (fcntl F_SETLEASE, F_RDLCK), and who is breaking one.
//
// A read lease is granted only where no descriptor open for writing and no shared writable mapping of the inode exists
// anywhere (not so on overlayfs). A later open for writing, or truncate(2), then waits until the lease is dropped, or
// until /proc/sys/fs/lease-break-time has passed.
// Does not promise: that open(O_RDONLY|O_TRUNC) waits. The kernel empties the file without breaking a read lease
// (measured on Linux 6.18, ext4 and tmpfs); the guard sees the changed size afterwards.
// Threads: break signals go to one thread (F_OWNER_TID), so that no other thread needs to block them.
#pragma once
#include <cstdint>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::guard {

struct BreakSignals {
  int thread = 0;  // the thread that reads them from a signalfd, with them and SIGIO blocked
  int number = 0;  // a real-time signal: queued, and it names the descriptor
};

enum class LeaseState {
  standing,
  breaking,  // somebody waits (or has been told EAGAIN), and the kernel still keeps him out
  lost,      // the kernel gave way, or there never was one
  untold,    // /proc could not be read: no descriptor is left
};

// 0, or the errno: EAGAIN where a writer exists, EACCES where the file is another user's, EINVAL where the file system
// has no leases.
int take_read_lease(const os::Handle& object, const BreakSignals& signals);
// The same, tried again for a while on EAGAIN: between fork and exec, a child of this process bears a copy of every
// descriptor, our own writing ones too.
int take_read_lease_within(const os::Handle& object, const BreakSignals& signals, int limit_ms);
void drop_lease(const os::Handle& object);
LeaseState lease_state(const os::Handle& object);

// {"pid","command","process_group"} of a process that waits for the lease on this inode, or null (O_NONBLOCK does not
// wait).
Json breaker_of(std::uint64_t inode);

// Of /proc/sys/fs/lease-break-time.
int lease_break_seconds();

}  // namespace holdfast::guard
