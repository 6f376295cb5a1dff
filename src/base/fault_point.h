// Named points at which a test build kills, stops or fails the process; a release build compiles them out.
//
// HOLDFAST_FAULT="before_publish:kill" (also :stop, :exit, :sleep=MS, :wait=PATH) acts at the first passage of that
// point; "before_publish@3:kill" at the third. `wait` makes the file PATH and holds that one thread until the file is
// gone, at most a minute; every other thread goes on. HF_FAULT_ORDERED(name) is true where the act is `fail`: the code
// there then fails in its own way. The names are listed in docs/testing.md; the crash tests use the same.
#pragma once

namespace holdfast {

#ifdef HOLDFAST_FAULT_POINTS
void fault_point(const char* name);
bool fault_ordered(const char* name);
#define HF_FAULT_POINT(name) ::holdfast::fault_point(name)
#define HF_FAULT_ORDERED(name) ::holdfast::fault_ordered(name)
#else
#define HF_FAULT_POINT(name) static_cast<void>(0)
#define HF_FAULT_ORDERED(name) false
#endif

}  // namespace holdfast
