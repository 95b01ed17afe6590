// One OS thread that runs blocks: its stacks, its shared memory, its signal stack. Private to the emulator's own files.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {

// Stacks of fibers, each with a guard page below it.
class Stacks {
 public:
  ~Stacks();
  void* take();            // the top of a free stack
  void give_back(void* top);
  bool guards(const void* address) const;   // whether the address is in a guard page
  bool owns(const void* top, const void* address) const;
  static constexpr size_t BYTES = 256 * 1024;

 private:
  // A process has at most 65,530 mappings, so most stacks of a large cooperative launch are small, without guard pages.
  static constexpr size_t MOST_GUARDED = 2048, SMALL_BYTES = 32 * 1024, TOGETHER = 64;
  std::vector<void*> free_, guarded_;
  std::vector<char*> unguarded_;
};

// Shared memory of the block that runs: what is declared, and the dynamic part, which ends at a guard page.
struct Arena {
  Arena();
  ~Arena();
  char* begin;
  char* dynamic_end;
  static constexpr size_t STATIC_BYTES = 512 * 1024, DYNAMIC_BYTES = 256 * 1024, GUARD_BYTES = 64 * 1024;
  bool holds(const void* address) const;
};

constexpr size_t PAGE_BYTES = 4096;

struct Stopped {
  int error = 0;
  std::string message;
};

struct RunningLaunch {
  Launch launch;
  uint64_t blocks = 0, shift = 0, factor = 1, chunk = 1;
  std::atomic<uint64_t> next{0};
  std::atomic<int> running{0};
  std::atomic<bool> has_failed{false};
  double deadline = 0;
  std::mutex mutex;
  Stopped stopped;
};

struct Worker {
  Worker();
  ~Worker();
  Stacks stacks;
  Arena arena;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<SharedSite> sites;
  std::vector<char> signal_stack;
  Block block;
  uint64_t epoch = 0;
  RunningLaunch* running = nullptr;
  int number = 0;
  bool runs_plain = false;
  Place place;
  void* fiber_stack = nullptr;  // the one in use now
};

struct Settings {
  int order = 0;  // 0 ascending, 1 descending, 2 random
  uint64_t seed = 0;
  int threads = 0;
  double time_limit_s = 60;
  bool launches_only = false;  // they are checked, and no kernel runs
};

// The parameters of the kernel that point into this memory, " or " between them; empty if there is none.
std::string name_arguments(const char* begin, size_t bytes);
// ` beyond the end of x: byte 4096 of an allocation of 4096 bytes`
std::string describe_outside(const char* address, const char* begin, size_t bytes);

extern thread_local Worker* worker __attribute__((tls_model("initial-exec")));
extern Settings settings;
extern thread_local const char* launching __attribute__((tls_model("initial-exec")));  // the kernel whose launch is checked

double now_s();
void prepare_block(Worker& own, RunningLaunch& running, Block& block, uint64_t linear);
void run_block(Worker& own, Block& block);
bool run_until_waiting(Worker& own, Block& block);   // false when the block has ended
void release_grid_waiters(Block& block);
void install_handlers(Worker& own);
void stop_launch(int error, const std::string& message);
[[noreturn]] void abandon_block();
void record(const char* check, const char* severity, const std::string& message, const char* file, int line,
            const Thread* thread, const std::string& value);
std::string place_of(const void* code, std::string& file, int& line);
void begin_checks(RunningLaunch& running);
// As long as it lives nobody reaches the memory of tensors of the host.
struct OutOfReach {
  OutOfReach();
  ~OutOfReach();
};
bool is_of_host(const void* address);
bool is_launching();
bool may_leave();  // whether this thread holds no lock
bool is_on_gpu(const void* pointer);
void begin_block_checks(Block& block);
void end_block_checks();
void note_meeting(Warp& warp, uint32_t arrived);
void note_shared(Block& block, char* place, size_t bytes, const std::string& name);
const char* error_name(int error);
const char* error_text(int error);
}

extern "C" __attribute__((visibility("hidden"))) void harness_emulator_switch(void** from, void* to);
