// The emulator's own code as one object: each library that is built holds a copy.
#include "worker.h"

#include "errors.cpp"
#include "fibers.cpp"
#include "faults.cpp"
#include "host_memory.cpp"
#include "findings.cpp"
#include "launch.cpp"
#include "lines.cpp"
#include "memory.cpp"
#include "shared.cpp"
#include "stacks.cpp"
#include "switch.cpp"
#include "checks.cpp"

namespace {
struct OnLoad {
  OnLoad() { harness_emulator::use_own_allocator(); }
} on_load;
}
