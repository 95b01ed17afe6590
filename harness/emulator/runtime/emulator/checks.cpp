// What a checked build notices about each access: races, bounds, alignment, shared memory that nobody has written.
//
// The compiler's instrumentation calls (hooks.cpp) end here. Shadow memory keeps, for every two bytes, who wrote and who
// read last. Two accesses of one block are ordered by a barrier, or by a warp operation in which both threads took part;
// accesses of two blocks only by a fence and atomics. Blocks run on one OS thread, so nothing here is locked.
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "worker.h"

namespace harness_emulator {

#ifndef HARNESS_CHECKED

void begin_checks(RunningLaunch&) {}
void begin_block_checks(Block&) {}
void end_block_checks() {}
void note_shared(Block&, char*, size_t, const std::string&) {}
void note_atomic(const void*, size_t) {}
void note_absent_source(bool, int, int) {}
void note_fence() {}
void note_meeting(Warp&, uint32_t) {}

#else

namespace {

struct Access {
  uint32_t block = 0;  // counted from 1 in a launch; 0 for none
  uint32_t thread : 10 = 0, is_atomic : 1 = 0, bytes : 2 = 0, interval : 19 = 0;
  uint32_t stamp = 0;
  uint32_t code = 0;
};
// `other` is the last reader before `read` that was another thread: who reads what it then writes would hide that one.
struct Cell {
  Access write, read, other;
};
constexpr size_t CELL_BYTES = 2, SHADOW_PAGE = 1024;
struct ShadowPage {
  Cell cells[SHADOW_PAGE / CELL_BYTES];
};
struct Variable {
  const char *begin, *end;
  std::string name;
};
// A write that conflicts is only wrong if it changes the value; that is known when it has happened.
struct Suspicion {
  const char* address = nullptr;
  size_t bytes = 0;
  char before[16];
  Access earlier, now;
  bool was_write = false, is_shared = false;
  Thread thread;
};

std::unordered_map<uintptr_t, std::unique_ptr<ShadowPage>> shadow;
uintptr_t last_page = 0;
ShadowPage* last_shadow = nullptr;
std::vector<Variable> variables;
Suspicion suspicion;
// A plain read of what others change by atomics is how a loop of compare-and-swap begins: only wrong if none follows.
struct DoubtfulRead {
  const char* address = nullptr;
  std::string check, message, value;
  uint32_t code = 0;
  Thread thread;
} doubtful;
uint32_t block_number = 0;
uint32_t clocks[MAX_WARPS][32][32];
std::vector<char> has_published, has_acquired;  // by block: a fence and then an atomic; an atomic
bool has_fenced = false;
const char *code_base = nullptr, *data_begin = nullptr, *data_end = nullptr;

int find_own_segments(dl_phdr_info* info, size_t, void*) {
  const char* here = reinterpret_cast<const char*>(&find_own_segments);
  const char *low = nullptr, *high = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) { continue; }
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!low || begin < low) { low = begin; }
    high = std::max(high, begin + info->dlpi_phdr[i].p_memsz);
  }
  if (here < low || here >= high) { return 0; }
  code_base = reinterpret_cast<const char*>(info->dlpi_addr);
  data_begin = low;
  data_end = high;
  return 1;
}

Cell& cell_at(const char* address) {
  const auto page = reinterpret_cast<uintptr_t>(address) / SHADOW_PAGE;
  if (page != last_page || last_shadow == nullptr) {
    auto& found = shadow[page];
    if (!found) { found = std::make_unique<ShadowPage>(); }
    last_page = page;
    last_shadow = found.get();
  }
  return last_shadow->cells[reinterpret_cast<uintptr_t>(address) % SHADOW_PAGE / CELL_BYTES];
}

std::string name_shared(const char* address) {
  for (const Variable& variable : variables) {
    if (address >= variable.begin && address < variable.end) {
      return variable.name + " (byte " + std::to_string(address - variable.begin) + ")";
    }
  }
  return "dynamic shared memory (byte " + std::to_string(address - current->block->dynamic_begin) + ")";
}

std::string name_global(const char* address) {
  const char* begin = nullptr;
  size_t bytes = 0;
  if (!find_device(address, &begin, &bytes)) { return "a global variable"; }
  const std::string names = name_arguments(begin, bytes);
  return "byte " + std::to_string(address - begin) + " of " + (names.empty() ? "" : names + ", ") + "an allocation of " +
         std::to_string(bytes) + " bytes";
}

std::string show_value(const char* address, size_t bytes) {
  char text[80];
  if (bytes == 4) {
    float real;
    int32_t whole;
    std::memcpy(&real, address, 4);
    std::memcpy(&whole, address, 4);
    std::snprintf(text, sizeof text, "%g as float, %d as int", double(real), whole);
  } else if (bytes == 8) {
    double real;
    long long whole;
    std::memcpy(&real, address, 8);
    std::memcpy(&whole, address, 8);
    std::snprintf(text, sizeof text, "%g as double, %lld as int", real, whole);
  } else {
    int at = std::snprintf(text, sizeof text, "bytes 0x");
    for (size_t i = 0; i < std::min<size_t>(bytes, 16); ++i) {
      at += std::snprintf(text + at, sizeof text - size_t(at), "%02x", static_cast<unsigned char>(address[i]));
    }
  }
  return text;
}

void report(const char* check, const std::string& message, uint32_t code, const Thread& thread, const std::string& value) {
  std::string file = thread.block->launch->file;
  int line = 0;
  place_of(code_base + code - 1, file, line);
  record(check, "error", message, file.c_str(), line, &thread, value);
}

std::string describe_other(const Access& other, const Thread& thread) {
  std::string file = thread.block->launch->file;
  int line = 0;
  place_of(code_base + other.code - 1, file, line);
  const dim3& shape = thread.block->launch->block;
  const unsigned x = other.thread % shape.x, y = other.thread / shape.x % shape.y, z = other.thread / shape.x / shape.y;
  std::string text = "thread (" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  if (other.block != block_number) { text += " of another block"; }
  return text + " at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
}

std::string describe_race(const char* address, const Access& earlier, const Access& now, const Thread& thread, bool is_write,
                          bool was_write, bool is_shared) {
  // A statement by which several threads write one place is no case for a barrier.
  const bool may_lack_barrier = is_shared && !(is_write && was_write && earlier.code == now.code);
  return "race on " + (is_shared ? name_shared(address) : name_global(address)) + ": this " + (is_write ? "write" : "read") +
         " and the " + (was_write ? "write" : "read") + " by " + describe_other(earlier, thread) + " are not ordered" +
         (may_lack_barrier ? ": missing __syncthreads()?" : "");
}

void settle_suspicion() {
  if (suspicion.address == nullptr) { return; }
  const Suspicion found = suspicion;
  suspicion.address = nullptr;
  if (std::memcmp(found.before, found.address, found.bytes) == 0) { return; }
  report(found.is_shared ? "shared_race" : "global_race",
         describe_race(found.address, found.earlier, found.now, found.thread, true, found.was_write, found.is_shared),
         found.now.code, found.thread,
         show_value(found.before, found.bytes) + ", then " + show_value(found.address, found.bytes));
}

void settle_doubtful_read() {
  if (doubtful.address == nullptr) { return; }
  doubtful.address = nullptr;
  report(doubtful.check.c_str(), doubtful.message, doubtful.code, doubtful.thread, doubtful.value);
}

bool is_ordered(const Access& before, const Access& now, const Thread& thread, bool is_shared) {
  if (before.block != now.block) {
    return is_shared || (before.block < has_published.size() && has_published[before.block] && has_acquired[now.block]);
  }
  if (before.thread == now.thread || before.interval != now.interval) { return true; }
  const uint32_t warp = before.thread / 32;
  return warp == thread.warp && clocks[warp][thread.lane][before.thread % 32] > before.stamp;
}

void suspect(const char* address, size_t bytes, const Access& earlier, const Access& now, const Thread& thread,
             bool was_write, bool is_shared) {
  if (suspicion.address != nullptr || bytes > sizeof suspicion.before) { return; }
  suspicion.address = address;
  suspicion.bytes = bytes;
  std::memcpy(suspicion.before, address, bytes);
  suspicion.earlier = earlier;
  suspicion.now = now;
  suspicion.thread = thread;
  suspicion.was_write = was_write;
  suspicion.is_shared = is_shared;
}

bool touches(const Access& before, const Access& now) { return before.block != 0 && (before.bytes & now.bytes) != 0; }

void check_races(const char* address, size_t bytes, bool is_write, bool is_shared, Access now, const Thread& thread) {
  for (const char* at = address; at < address + bytes;) {
    const size_t offset = reinterpret_cast<uintptr_t>(at) % CELL_BYTES;
    const size_t step = std::min<size_t>(CELL_BYTES - offset, size_t(address + bytes - at));
    now.bytes = step == 2 ? 3 : 1u << offset;
    Cell& cell = cell_at(at);
    const bool written_here = cell.write.block == now.block;
    if (is_shared && (!is_write || now.is_atomic) && !written_here) {
      report("uninitialised_shared",
             "reads " + name_shared(at) + " of shared memory, which nobody has written before: missing __syncthreads()?",
             now.code, thread, show_value(address, bytes));
      return;
    }
    const bool both_atomic = now.is_atomic && cell.write.is_atomic;
    if (touches(cell.write, now) && !both_atomic && !is_ordered(cell.write, now, thread, is_shared)) {
      if (is_write) {
        suspect(address, bytes, cell.write, now, thread, true, is_shared);
      } else {
        const char* check = is_shared ? "shared_race" : "global_race";
        const std::string message = describe_race(at, cell.write, now, thread, false, true, is_shared);
        if (cell.write.is_atomic && doubtful.address == nullptr) {
          doubtful = {address, check, message, show_value(address, bytes), now.code, thread};
        } else if (!cell.write.is_atomic) {
          report(check, message, now.code, thread, show_value(address, bytes));
        }
      }
    }
    for (const Access& read : {cell.read, cell.other}) {
      if (!is_write || !touches(read, now) || (now.is_atomic && read.is_atomic)) { continue; }
      if (!is_ordered(read, now, thread, is_shared)) { suspect(address, bytes, read, now, thread, false, is_shared); }
    }
    if (!is_write && (cell.read.thread != now.thread || cell.read.block != now.block)) { cell.other = cell.read; }
    (is_write ? cell.write : cell.read) = now;
    at += step;
  }
}

// Whether the place is shared memory of the block; reports what is beyond its variables.
bool check_shared_place(const char* address, size_t bytes, uint32_t code, const Thread& thread) {
  const Block& block = *thread.block;
  const bool is_dynamic = address >= block.dynamic_begin && address + bytes <= block.dynamic_begin + block.dynamic_bytes;
  const bool is_declared = std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
    return address >= variable.begin && address + bytes <= variable.end;
  });
  if (is_dynamic || is_declared) { return true; }
  std::string near = "the dynamic shared memory of " + std::to_string(block.dynamic_bytes) + " bytes";
  long distance = 1l << 40;
  for (const Variable& variable : variables) {
    const long from_end = std::abs(long(address - variable.end)), from_begin = std::abs(long(address - variable.begin));
    if (std::min(from_end, from_begin) < distance) {
      distance = std::min(from_end, from_begin);
      near = variable.name + " (" + std::to_string(variable.end - variable.begin) + " bytes of shared memory) at byte " +
             std::to_string(address - variable.begin);
    }
  }
  if (block.dynamic_bytes && address >= block.dynamic_begin - 65536 && address < block.dynamic_begin + block.dynamic_bytes + 65536 &&
      std::abs(long(address - block.dynamic_begin)) < distance + long(block.dynamic_bytes)) {
    near = "the dynamic shared memory of " + std::to_string(block.dynamic_bytes) + " bytes at byte " +
           std::to_string(address - block.dynamic_begin);
  }
  report("out_of_bounds", "an access beyond " + near, code, thread, "");
  return false;
}

bool is_near_piece(const char* address, std::string& description) {
  const char* begin = nullptr;
  size_t bytes = 0;
  for (const long distance : {-1L, -16L, -64L, -256L, -1024L, -4096L, 16L, 64L, 256L, 1024L, 4096L}) {
    if (!find_device(address + distance, &begin, &bytes)) { continue; }
    description = describe_outside(address, begin, bytes);
    return true;
  }
  return false;
}

}

namespace {
template <typename T>
bool lies_in(const char* address, const T* begin, size_t count) {
  return address >= reinterpret_cast<const char*>(begin) && address < reinterpret_cast<const char*>(begin + count);
}

// What the emulator keeps of the thread itself: kernels read their indices there.
bool is_bookkeeping(const char* address, const Block& block) {
  return lies_in(address, block.threads, 1024) || lies_in(address, &block, 1) || lies_in(address, block.sites, MAX_SITES) ||
         lies_in(address, block.launch, 1) || lies_in(address, block.warp, MAX_WARPS);
}
}

// By host code of the candidate; what the emulator's headers and the standard library do there stands in other files.
static void check_host_access(const void* place, bool is_write, const void* code_address) {
  static std::atomic<bool> is_known{false};
  if (is_known.load(std::memory_order_relaxed) || is_launching() || !is_on_gpu(place)) { return; }
  std::string file;
  int line = 0;
  place_of(static_cast<const char*>(code_address) - 1, file, line);
  if (file.empty() || file[0] == '/' || is_known.exchange(true)) { return; }
  const std::string message = std::string("host code ") + (is_write ? "writes" : "reads") + " memory of a tensor on the GPU";
  record("host_access", "error", message, file.c_str(), line, nullptr, "");
}

void check_access(const void* place, size_t bytes, bool is_write, bool is_atomic, const void* code_address) {
  if (current == nullptr && (worker == nullptr || worker->running == nullptr)) {
    return check_host_access(place, is_write, code_address);
  }
  if (current == nullptr || worker == nullptr || worker->running == nullptr) { return; }
  const Thread& thread = *current;
  const char* address = static_cast<const char*>(place);
  if (worker->stacks.owns(worker->fiber_stack, address)) { return; }
  if (is_bookkeeping(address, *thread.block)) { return; }
  settle_suspicion();
  const auto code = uint32_t(static_cast<const char*>(code_address) - code_base);
  const Block& block = *thread.block;
  const bool in_arena = worker->arena.holds(address) ||
                        (block.launch->is_cooperative && address >= block.static_begin &&
                         address < block.dynamic_begin + block.dynamic_bytes + 4096);
  const char* begin = nullptr;
  size_t piece_bytes = 0;
  const bool is_piece = !in_arena && find_device(address, &begin, &piece_bytes);
  const bool is_own_data = !in_arena && !is_piece && address >= data_begin && address < data_end;
  std::string description;
  if (!in_arena && !is_piece && !is_own_data) {
    if (is_near_piece(address, description)) {
      report("out_of_bounds", std::string(is_write ? "writes" : "reads") + description, code, thread, "");
    }
    return;
  }
  if (is_own_data && !is_write && !is_atomic) { return; }  // constants, and what the emulator itself keeps
  if (is_own_data) { return; }
  if (is_piece && address + bytes > begin + piece_bytes) {
    report("out_of_bounds", std::string(is_write ? "writes" : "reads") + describe_outside(address, begin, piece_bytes), code,
           thread, "");
    return;
  }
  if (in_arena && !check_shared_place(address, bytes, code, thread)) { return; }
  Access now;
  now.block = block_number;
  now.thread = thread.linear & 1023u;
  now.is_atomic = is_atomic;
  now.interval = thread.interval & 0x7ffffu;
  now.stamp = clocks[thread.warp][thread.lane][thread.lane];
  now.code = code;
  check_races(address, bytes, is_write, in_arena, now, thread);
}

void check_alignment(const void* pointer, unsigned char log, const char* type, const char* file, int line) {
  if (current == nullptr || pointer == nullptr || file == nullptr || file[0] == '/') { return; }
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (address % (uintptr_t(1) << log) == 0) { return; }
  char text[200];
  std::snprintf(text, sizeof text, "%s at address %p, which is no multiple of %u", type, pointer, 1u << log);
  record("misaligned", "error", text, file, line, current, "");
}

void begin_checks(RunningLaunch& running) {
  if (code_base == nullptr) { dl_iterate_phdr(find_own_segments, nullptr); }
  shadow.clear();
  last_shadow = nullptr;
  block_number = 0;
  const size_t blocks = size_t(std::min<uint64_t>(running.blocks, 1u << 24)) + 2;
  has_published.assign(blocks, 0);
  has_acquired.assign(blocks, 0);
}

void begin_block_checks(Block&) {
  end_block_checks();
  ++block_number;
  variables.clear();
  has_fenced = false;
  std::memset(clocks, 0, sizeof clocks);
}

void end_block_checks() {
  settle_suspicion();
  settle_doubtful_read();
}

void note_shared(Block&, char* place, size_t bytes, const std::string& name) { variables.push_back({place, place + bytes, name}); }

void note_atomic(const void* address, size_t bytes) {
  if (current == nullptr) { return; }
  if (doubtful.address == address) { doubtful.address = nullptr; }
  check_access(address, bytes, true, true, __builtin_return_address(0));
  if (block_number < has_acquired.size()) {
    has_acquired[block_number] = 1;
    if (has_fenced) { has_published[block_number] = 1; }
  }
}

void note_fence() { has_fenced = true; }

void note_absent_source(bool may_be_unused, int lane, int line) {
  char text[120];
  std::snprintf(text, sizeof text, "a shuffle reads lane %d, which does not take part: its result is undefined", lane);
  if (may_be_unused) { note("undefined_lane", "warning", text, line); }  // in reductions of a part of a warp
  else { note("absent_lanes", "error", text, line); }
}

void note_meeting(Warp& warp, uint32_t arrived) {
  const auto number = uint32_t(&warp - current->block->warp);
  uint32_t merged[32] = {};
  for (uint32_t left = arrived; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    ++clocks[number][lane][lane];
    for (int i = 0; i < 32; ++i) { merged[i] = std::max(merged[i], clocks[number][lane][i]); }
  }
  for (uint32_t left = arrived; left; left &= left - 1) {
    std::memcpy(clocks[number][__builtin_ctz(left)], merged, sizeof merged);
  }
}

#endif

}

#ifdef HARNESS_CHECKED
#include "hooks.cpp"
#endif
