// Tensors of the host that an extension was given: out of reach while a kernel runs, as they are where there is a GPU.
#include <sys/mman.h>

#include <map>

#include "worker.h"

namespace harness_emulator {

namespace {

std::mutex mutex;
std::map<char*, size_t> regions;  // whole pages
std::atomic<int> launches{0};

void protect(int access) {
  for (const auto& [begin, bytes] : regions) { mprotect(begin, bytes, access); }
}

}

OutOfReach::OutOfReach() {
  std::lock_guard<std::mutex> lock(mutex);
  if (launches++ == 0) { protect(PROT_NONE); }
}
OutOfReach::~OutOfReach() {
  std::lock_guard<std::mutex> lock(mutex);
  if (--launches == 0) { protect(PROT_READ | PROT_WRITE); }
}

bool is_launching() { return launches.load(std::memory_order_relaxed) > 0; }

bool is_of_host(const void* address) {  // without the lock: it is asked for by a handler, while a kernel runs
  const char* place = static_cast<const char*>(address);
  for (const auto& [begin, bytes] : regions) {
    if (place >= begin && place < begin + bytes) { return true; }
  }
  return false;
}

}

// From now on these pages are the host's; with no bytes, no longer.
extern "C" __attribute__((visibility("default"))) void harness_emulator_keep_from_kernels(void* begin, size_t bytes) {
  std::lock_guard<std::mutex> lock(harness_emulator::mutex);
  if (bytes) {
    harness_emulator::regions[static_cast<char*>(begin)] = bytes;
  } else {
    harness_emulator::regions.erase(static_cast<char*>(begin));
    harness_emulator::forget_memory(begin);
  }
}
