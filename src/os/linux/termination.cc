#include "os/termination.h"

#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.h"
#include "os/handle.h"

namespace holdfast::os {
namespace {

// Enough for a request (its JSON nests at most 64 deep) in a sanitizer build, too; only touched pages count.
constexpr std::size_t kStackBytes = 512U * 1024U;

int add_thread_local_bytes(dl_phdr_info* module, std::size_t, void* sum) {
  for (int at = 0; at < module->dlpi_phnum; ++at) {
    const auto& part = module->dlpi_phdr[at];
    if (part.p_type == PT_TLS) *static_cast<std::size_t*>(sum) += part.p_memsz + part.p_align;
  }
  return 0;
}

// The thread-local variables of every loaded module lie in each thread's stack: a sanitizer's, or a preloaded
// library's, may alone be larger than the stack, and then no thread would start.
std::size_t thread_local_bytes() {
  std::size_t sum = 0;
  ::dl_iterate_phdr(add_thread_local_bytes, &sum);
  return sum;
}

}  // namespace

struct Termination::State {
  Handle signals;
  Handle event;
  sigset_t before{};
};

Result<std::unique_ptr<Termination>> Termination::open() {
  auto state = std::make_unique<State>();
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, number);
  state->signals = Handle(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!state->signals) return os_refusal(Code::os_failed, "signalfd", errno);
  state->event = Handle(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->event) return os_refusal(Code::os_failed, "eventfd", errno);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &state->before); error != 0) {
    return os_refusal(Code::os_failed, "pthread_sigmask", error);
  }
  std::unique_ptr<Termination> termination(new Termination());
  termination->state_ = std::move(state);
  return termination;
}

Termination::~Termination() {
  // What is pending was an order to end, which has been followed: it does not kill the process on its way out.
  signalfd_siginfo taken{};
  while (::read(state_->signals.fd(), &taken, sizeof taken) > 0) {}
  ::pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

bool Termination::wait(int limit_ms) {
  pollfd sources[2] = {{state_->signals.fd(), POLLIN, 0}, {state_->event.fd(), POLLIN, 0}};
  int count = 0;
  while ((count = ::poll(sources, 2, limit_ms)) < 0 && errno == EINTR) {}
  return count != 0;
}

void Termination::request() {
  const std::uint64_t one = 1;
  while (::write(state_->event.fd(), &one, sizeof one) < 0 && errno == EINTR) {}
}

void keep_footprint_small() {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) == 0) {
    ::pthread_attr_setstacksize(&attributes, kStackBytes + thread_local_bytes());
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  ::mallopt(M_ARENA_MAX, 2);
  // Fixed, so that the first large buffer that is freed does not raise it and keep the next ones resident.
  ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}

}  // namespace holdfast::os
