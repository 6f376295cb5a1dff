// Confinement: which paths a program and all that it starts may write to (Landlock, unprivileged, for ever).
//
// Calling sequence: prepare() in the parent, with open folders and files; then CommandProcess::start() with it.
// (enter() is what the child calls between fork and exec.) Promises, for the program, its children and grandchildren,
// however they are started, as root too:
//   - outside the writable folders and files nothing is opened for writing, truncated, made, removed, renamed, linked
//     or moved, neither through links, /proc, file handles, io_uring nor a namespace of one's own; nothing is mounted;
//   - it traces no process outside and takes no descriptor of one, gains nothing by a setuid program, and, where the
//     kernel knows scopes (ABI 6), signals no process outside and connects to no abstract socket of one;
//   - a writable folder takes everything but device nodes: root would reach the disk through one. A writable file takes
//     writing and truncating; it is not removed, renamed or replaced;
//   - a folder and a file are objects, not names: who renames them does not change what is writable;
//   - reading and executing stay as they were. The devices that programs take for granted (null, zero, full, random,
//     urandom, tty, terminals) can be written to.
// Does not promise, because the kernel does not deny it:
//   - chmod, chown, utimes and extended attributes of files outside that the user owns. A system call filter would not
//     help: it sees neither the file nor what the path means, and the same calls are needed inside;
//   - writing through descriptors that were open before (CommandProcess leaves the three standard streams alone);
//   - what another program does when it is asked, over a path's socket, a pipe or the network: a service, a container
//     engine; and what a terminal is made to believe (keystrokes are pushed into it where dev.tty.legacy_tiocsti is 1);
//   - for root: what is no file, such as loading a kernel module, and device nodes that are already in the folder;
//   - below ABI 6: signals and abstract sockets; below ABI 5: ioctl of devices.
// Refuses: confinement_unavailable where the kernel has no Landlock, or one that cannot deny truncation (ABI below 3);
// os_failed. Effect: none. Threads: a value; enter() concerns the calling thread alone.
#pragma once
#include <vector>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

class Confinement {
 public:
  // The handles may be closed afterwards; they need no more than to name the object (O_PATH).
  static Result<Confinement> prepare(const std::vector<Handle>& writable_folders,
                                     const std::vector<Handle>& writable_files);

  // Confines the calling thread: 0, or the system's error number, and then it is not confined. Takes no lock and
  // allocates nothing.
  int enter() const;

  int abi() const { return abi_; }

 private:
  Confinement(Handle rules, int abi) : rules_(std::move(rules)), abi_(abi) {}

  Handle rules_;
  int abi_;
};

}  // namespace holdfast::os
