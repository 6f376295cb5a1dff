// Streams: bytes that come and go in order, through pipes, terminals and files, and files that are made anew.
//
// The surfaces use it for standard input, standard output and the files that their arguments name; the workspace's own
// files go through os/control_folder.h.
// Promises: short reads and writes, EINTR and EAGAIN are dealt with (field report M28); descriptors are close-on-exec;
// create_file never follows a link and never opens what is there already.
// Errors: the code that the caller names, with details.os_error. Threads: each call stands alone.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "holdfast/result.h"
#include "os/handle.h"

namespace holdfast::os {

// A process may be started with its standard descriptors closed, and a file that it opens then takes their numbers.
// Opens what is missing so that nothing can be written to it, and turns SIGPIPE into an error of the write.
// Called first in main().
void prepare_standard_streams();

// For reading; a path as the user typed it, links followed.
Result<Handle> open_to_read(const std::string& path, Code code);
// A new file, 0600; an existing name is refused.
Result<Handle> create_file(const std::string& path, Code code);

// Up to `size` bytes, at least one; 0 at the end.
Result<std::size_t> read_some(const Handle& stream, char* into, std::size_t size, Code code);
// All of them, however slowly the reader takes them.
Result<void> write_stream(const Handle& stream, std::string_view bytes, Code code);

// Waits until nobody can write to `input` any more or nobody can read from `output` any more: pipes and sockets. A file
// never says so, and the call then does not return.
void wait_until_abandoned(const Handle& input, const Handle& output);
// Of a pipe or a socket, how much of what was written waits to be read (of a socket counted in the memory that it
// takes: it falls with each whole piece that is read); 0 where that cannot be told.
std::size_t bytes_unread(const Handle& pipe);
// Standard output for this holder alone: descriptor 1 leads to standard error from here on, so that whatever else
// writes to it, a child too, does not mix with what is written here (field report M20).
Result<Handle> take_standard_output();

bool is_terminal(const Handle& stream);

}  // namespace holdfast::os
