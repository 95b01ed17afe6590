// Where a block's declared shared variables lie: one after the other, in the order in which threads first come upon them.
#include <cstdio>

#include "worker.h"

namespace harness_emulator {

namespace {
struct Declared {
  std::string name;
  size_t bytes, alignment;
};
std::mutex declared_mutex;
std::vector<Declared>& declared() {
  static auto* all = new std::vector<Declared>;
  return *all;
}
#ifdef HARNESS_CHECKED
constexpr size_t GAP = 256;  // so that what lies beyond a variable is no other one
#else
constexpr size_t GAP = 0;
#endif
}

int register_shared(const char* name, size_t bytes, size_t alignment) {
  std::lock_guard<std::mutex> lock(declared_mutex);
  if (declared().size() >= MAX_SITES) { throw std::bad_alloc(); }
  declared().push_back({name, bytes, std::max<size_t>(alignment, 16)});
  return int(declared().size()) - 1;
}

void* place_shared(Block& block, int site) {
  Declared variable;
  {
    std::lock_guard<std::mutex> lock(declared_mutex);
    variable = declared()[size_t(site)];
  }
  const size_t at = (block.static_used + variable.alignment - 1) / variable.alignment * variable.alignment;
  const size_t used = at + variable.bytes;
  block.shared_declared += variable.bytes;
  const Target& target = harness_emulator_target;
  char text[200];
  if (block.shared_declared > size_t(target.static_shared_bytes_per_block)) {
    std::snprintf(text, sizeof text, "a kernel declares %zu bytes of shared memory, at most %d can be declared",
                  block.shared_declared, target.static_shared_bytes_per_block);
    fail_thread(98, "too_much_shared", text);
  }
  if (block.shared_declared + block.dynamic_bytes > size_t(target.max_shared_bytes_per_block)) {
    std::snprintf(text, sizeof text, "%zu bytes of declared and %zu of dynamic shared memory: %s has %d for a block",
                  block.shared_declared, block.dynamic_bytes, target.name, target.max_shared_bytes_per_block);
    fail_thread(1, "too_much_shared", text);
  }
  char* place = block.static_begin + at;
  std::memset(place, 0xff, variable.bytes);
  block.static_used = used + GAP;
  block.sites[site] = {block.epoch, place};
  note_shared(block, place, variable.bytes, variable.name);
  return place;
}

}
