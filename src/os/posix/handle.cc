#include "os/handle.h"

#include <unistd.h>

namespace holdfast::os {

// close() is not repeated on EINTR: Linux has closed the descriptor by then.
void Handle::reset() {
  if (native_ != kNone) ::close(fd());
  native_ = kNone;
}

}  // namespace holdfast::os
