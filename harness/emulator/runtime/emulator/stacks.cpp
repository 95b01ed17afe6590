// Memory of a worker: stacks for fibers, and the arena of shared memory.
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "worker.h"

namespace harness_emulator {

namespace {

char* map_memory(size_t bytes) {
  void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) { throw std::bad_alloc(); }
  return static_cast<char*>(found);
}
}

Stacks::~Stacks() {
  for (void* top : guarded_) { munmap(static_cast<char*>(top) - BYTES - PAGE_BYTES, BYTES + PAGE_BYTES); }
  for (char* begin : unguarded_) { munmap(begin, TOGETHER * SMALL_BYTES); }
}

void* Stacks::take() {
  if (free_.empty() && guarded_.size() < MOST_GUARDED) {
    char* begin = map_memory(BYTES + PAGE_BYTES);
    mprotect(begin, PAGE_BYTES, PROT_NONE);
    free_.push_back(begin + PAGE_BYTES + BYTES);
    guarded_.push_back(begin + PAGE_BYTES + BYTES);
  } else if (free_.empty()) {
    char* begin = map_memory(TOGETHER * SMALL_BYTES);
    for (size_t i = TOGETHER; i > 0; --i) { free_.push_back(begin + i * SMALL_BYTES); }
    unguarded_.push_back(begin);
  }
  void* top = free_.back();
  free_.pop_back();
  return top;
}

void Stacks::give_back(void* top) { free_.push_back(top); }

bool Stacks::guards(const void* address) const {
  for (void* top : guarded_) {
    const char* guard = static_cast<const char*>(top) - BYTES - PAGE_BYTES;
    if (address >= guard && address < guard + PAGE_BYTES) { return true; }
  }
  return false;
}

bool Stacks::owns(const void* top, const void* address) const {
  return address < top && address >= static_cast<const char*>(top) - BYTES;
}

Arena::Arena() {
  const size_t bytes = STATIC_BYTES + DYNAMIC_BYTES + 3 * GUARD_BYTES;
  char* all = map_memory(bytes);
  mprotect(all, GUARD_BYTES, PROT_NONE);
  begin = all + GUARD_BYTES;
  mprotect(begin + STATIC_BYTES, GUARD_BYTES, PROT_NONE);
  dynamic_end = begin + STATIC_BYTES + GUARD_BYTES + DYNAMIC_BYTES;
  mprotect(dynamic_end, GUARD_BYTES, PROT_NONE);
}

Arena::~Arena() { munmap(begin - GUARD_BYTES, STATIC_BYTES + DYNAMIC_BYTES + 3 * GUARD_BYTES); }

bool Arena::holds(const void* address) const {
  return address >= begin - GUARD_BYTES && address < dynamic_end + GUARD_BYTES;
}

}
