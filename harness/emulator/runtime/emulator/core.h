// A launch, its blocks and threads, as kernels see them. The work itself is in launch.cpp and fibers.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "target.h"
#include "vectors.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {

struct Block;

// What stands in code for the device for names that only the host has: see harness.emulator.nvcc_rules.
struct NotOnTheDevice {};

// Threads per block, blocks per multiprocessor: what __launch_bounds__ says, 0 where it says nothing.
struct Bounds {
  int threads = 0, blocks = 0, cluster = 0;
};

// The indices of one thread in a kernel that runs as a plain loop.
struct Place {
  uint3 threadIdx, blockIdx;
  dim3 blockDim, gridDim;
};

// A pointer among a kernel's parameters, for messages.
struct Argument {
  const char* name;
  const void* address;
};
inline const void* find_address(...) { return nullptr; }
template <typename T>
const void* find_address(T* pointer) { return (const void*)pointer; }
template <typename T, typename = decltype(std::declval<const T&>().data())>
const void* find_address(const T& accessor) { return accessor.data(); }

struct Launch {
  const char* kernel;
  const char* file;
  int line;
  dim3 grid, block;
  size_t shared_bytes;
  bool is_plain, is_cooperative;
  const void* closure;
  void (*run_thread)(const void* closure);
  void (*run_block)(const void* closure, Place& place);
  const Argument* arguments;
  size_t argument_count;
};

struct Thread {
  uint3 thread;
  Block* block;
  uint32_t linear;
  uint8_t lane, warp;
  bool is_started, has_exited;
  void* stack;
  void* stack_pointer;
  int waits_at_line;      // of the barrier or warp operation
  uint32_t accesses;      // counts atomics, so that spinning threads let others go on
  uint32_t interval;      // how many barriers this thread has passed
};

constexpr int MAX_WARPS = 32;
constexpr int MAX_SITES = 2048;
constexpr int BARRIERS = 16;

constexpr int MEETINGS = 40;

// What lanes meet for. Lanes that do different things do not meet, whatever their masks are.
enum class Operation : uint8_t { other, wait, shuffle, vote, match, reduce };

// One warp operation under way: those that the mask names meet here.
struct Meeting {
  uint32_t mask, arrived, readers;
  Operation operation;
  bool is_free;  // of all lanes that come to this line before the others are stuck
  int line;
  uint64_t value[32], more[32];
};

struct Warp {
  uint32_t alive, ready;
  uint64_t open, busy;  // which meetings wait for lanes; which are not free
  Meeting meetings[MEETINGS];
};

struct Barrier {
  uint32_t arrived, expected;
  uint32_t waiting[MAX_WARPS];
  int line;
  int count, result;
  bool mixed;
};

struct SharedSite {
  uint64_t epoch;
  void* address;
};

struct Block {
  uint3 index;
  const Launch* launch;
  uint32_t count, alive, warps, ready_warps;
  Thread* threads;
  Warp* warp;
  Barrier barriers[BARRIERS];
  uint32_t grid_waiting;   // threads that wait for the whole grid
  char* static_begin;
  size_t static_used, static_limit, shared_declared;
  char* dynamic_begin;
  size_t dynamic_bytes;
  uint64_t epoch;
  SharedSite* sites;
  void* main_stack_pointer;
  uint64_t linear_index;
};

extern thread_local Thread* current __attribute__((tls_model("initial-exec")));

// The launch that the next call of a kernel is.
void configure(dim3 grid, dim3 block = 1, size_t shared_bytes = 0, const void* stream = nullptr);
bool is_only_asked_for_key();
void answer_key(const void* key, const char* kernel, Bounds bounds);
void start(Launch& launch, const void* key, Bounds bounds);

template <typename Body>
void run_kernel(const char* kernel, const char* file, int line, Bounds bounds, std::initializer_list<Argument> arguments,
                const Body& body) {
  auto run = +[](const void* closure) {
    Body own(*static_cast<const Body*>(closure));
    own();
  };
  const void* key = reinterpret_cast<const void*>(run);
  if (is_only_asked_for_key()) { return answer_key(key, kernel, bounds); }
  Launch launch{kernel, file, line, {}, {}, 0, false, false, &body, run, nullptr, arguments.begin(), arguments.size()};
  start(launch, key, bounds);
}

template <typename Body>
void run_plain_kernel(const char* kernel, const char* file, int line, Bounds bounds,
                      std::initializer_list<Argument> arguments, const Body& body) {
  auto run = +[](const void* closure, Place& given) {
    const Body first(*static_cast<const Body*>(closure));
    const Place place = given;
    for (unsigned z = 0; z < place.blockDim.z; ++z) {
      for (unsigned y = 0; y < place.blockDim.y; ++y) {
        for (unsigned x = 0; x < place.blockDim.x; ++x) {
          Place own = place;
          own.threadIdx = {x, y, z};
          Body body_of_thread(first);
          body_of_thread(own);
        }
      }
    }
  };
  const void* key = reinterpret_cast<const void*>(run);
  if (is_only_asked_for_key()) { return answer_key(key, kernel, bounds); }
  Launch launch{kernel, file, line, {}, {}, 0, true, false, &body, nullptr, run, arguments.begin(), arguments.size()};
  start(launch, key, bounds);
}

// Which kernel a function is, for what is asked about it or set for it: it is called, and only says its name.
struct KernelKey {
  const void* key;
  const char* kernel;
  Bounds bounds;
};
void begin_asking();
KernelKey end_asking();
template <typename... P>
KernelKey find_key(void (*kernel)(P...)) {
  begin_asking();
  if constexpr (sizeof...(P) == 0) {
    kernel();
  } else {
    alignas(64) static char nothing[4096] = {};
    kernel(*reinterpret_cast<std::remove_reference_t<P>*>(nothing)...);
  }
  return end_asking();
}

// Shared memory. `Tag` tells declarations of one type apart.
int register_shared(const char* name, size_t bytes, size_t alignment);
void* place_shared(Block& block, int site);
template <typename T, typename Tag>
T& shared_variable(const char* name) {
  static_assert(sizeof(T) <= 48 * 1024, "a kernel uses too much shared data: more than 48 KiB must be dynamic");
  static const int site = register_shared(name, sizeof(T), alignof(T));
  Block& block = *current->block;
  if (block.sites[site].epoch != block.epoch) { place_shared(block, site); }
  return *static_cast<T*>(block.sites[site].address);
}
template <typename T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(current->block->dynamic_begin);
}

// Waiting and meeting: see fibers.cpp.
int wait_at_barrier(int barrier, int threads, int predicate_kind, int predicate, int line);
void arrive_at_barrier(int barrier, int threads, int line);  // without waiting there
void wait_for_grid(int line);
// A barrier in the block's own memory: expected, missing, and how often it was passed.
void begin_arrivals(unsigned* state, unsigned expected);
unsigned long long arrive_at(unsigned* state, unsigned count);
void drop_arrival(unsigned* state);
void wait_for_arrivals(const unsigned* state, unsigned long long token, int line);
Meeting& meet(uint32_t mask, uint64_t value, uint64_t more, int line, Operation operation);
void leave(Meeting& meeting);
uint32_t lanes_here(int line);
void let_others_run();
[[noreturn]] void fail_thread(int error, const char* check, const char* message, int line = 0);
void note(const char* check, const char* severity, const char* message, int line = 0, const char* value = "");
inline void count_access() {
  if (current != nullptr && (++current->accesses & 63u) == 0) { let_others_run(); }
}
inline void yield_after_failure() {
  if (current != nullptr) { let_others_run(); }
}

// Errors of the runtime, as cudaGetLastError gives them.
void set_error(int error);
int take_error();
int peek_error();

// Memory that kernels may use: a guard page behind each piece.
void* allocate_device(size_t bytes);
bool release_device(void* pointer);
bool find_device(const void* pointer, const char** begin, size_t* bytes);
void know_memory(const void* begin, size_t bytes);
void forget_memory(const void* begin);  // of others, that was known
void use_own_allocator();
// By the runtime, not by host code of the candidate, into which the compiler would put them.
void copy_bytes(void* to, const void* from, size_t bytes);
void fill_bytes(void* to, int value, size_t bytes);

uint64_t read_clock();
}
