// A launch: what it asks for against what the target has, its blocks over OS threads, and how it ends.
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "worker.h"

namespace harness_emulator {

Settings settings;
thread_local const char* launching = nullptr;
void seed_order(uint64_t seed);

namespace {

struct Pending {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool is_set = false, is_cooperative = false;
};
thread_local Pending pending;
thread_local bool is_asking = false;
thread_local KernelKey asked;
std::mutex attributes_mutex;
std::map<const void*, int> allowed_shared;  // by kernel: what cudaFuncSetAttribute has set

bool fail_launch(const Launch& launch, int error, const char* check, const std::string& message) {
  record(check, "error", message, launch.file, launch.line, nullptr, "");
  set_error(error);
  return false;
}

bool check_shape(const Launch& launch, Bounds bounds) {
  const Target& target = harness_emulator_target;
  const dim3 &grid = launch.grid, &block = launch.block;
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  char text[240];
  std::snprintf(text, sizeof text, "kernel %s is launched with grid (%u, %u, %u) and block (%u, %u, %u)", launch.kernel,
                grid.x, grid.y, grid.z, block.x, block.y, block.z);
  const std::string what = text;
  if (threads == 0 || uint64_t(grid.x) * grid.y * grid.z == 0) {
    return fail_launch(launch, 9, "invalid_launch", what + ": a size is zero");
  }
  if (threads > uint64_t(target.max_threads_per_block) || block.x > unsigned(target.max_block_x) ||
      block.y > unsigned(target.max_block_y) || block.z > unsigned(target.max_block_z)) {
    return fail_launch(launch, 9, "too_many_threads",
                       what + ": " + std::to_string(threads) + " threads in a block, " + target.name + " allows " +
                           std::to_string(target.max_threads_per_block) + " (at most 1024, 1024 and 64 in x, y and z)");
  }
  if (grid.x > unsigned(target.max_grid_x) || grid.y > unsigned(target.max_grid_y) || grid.z > unsigned(target.max_grid_z)) {
    return fail_launch(launch, 9, "too_many_blocks", what + ": at most 2147483647, 65535 and 65535 blocks in x, y and z");
  }
  if (bounds.threads > 0 && threads > uint64_t(bounds.threads)) {
    return fail_launch(launch, 1, "too_many_threads",
                       what + ": its __launch_bounds__ promise at most " + std::to_string(bounds.threads));
  }
  return true;
}

bool check_shared(const Launch& launch, const void* key) {
  const Target& target = harness_emulator_target;
  size_t allowed = target.static_shared_bytes_per_block;
  {
    std::lock_guard<std::mutex> lock(attributes_mutex);
    for (const void* known : {key, static_cast<const void*>(nullptr)}) {
      const auto found = allowed_shared.find(known);
      if (found != allowed_shared.end()) { allowed = std::max(allowed, size_t(found->second)); }
    }
  }
  if (launch.shared_bytes <= allowed) { return true; }
  std::string text = "kernel " + std::string(launch.kernel) + " asks for " + std::to_string(launch.shared_bytes) +
                     " bytes of dynamic shared memory, it may have " + std::to_string(allowed);
  if (launch.shared_bytes <= size_t(target.max_shared_bytes_per_block)) {
    text += " unless cudaFuncSetAttribute(..., cudaFuncAttributeMaxDynamicSharedMemorySize, ...) allows more";
  }
  return fail_launch(launch, 1, "too_much_shared", text);
}

int count_workers() {
  if (settings.threads > 0) { return std::min(settings.threads, 64); }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int found = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  return std::clamp(found, 1, 16);
}

uint64_t choose_block(const RunningLaunch& running, uint64_t number) {
  if (settings.order == 1) { return running.blocks - 1 - number; }
  if (settings.order == 2) {
    return uint64_t((static_cast<unsigned __int128>(number) * running.factor + running.shift) % running.blocks);
  }
  return number;
}

void set_order(RunningLaunch& running) {
  if (settings.order != 2) { return; }
  uint64_t factor = (settings.seed * 0x9e3779b97f4a7c15ull + 12345) % running.blocks | 1;
  while (std::gcd(factor, running.blocks) != 1) { ++factor; }
  running.factor = factor;
  running.shift = settings.seed * 0xbf58476d1ce4e5b9ull % running.blocks;
}

void work(Worker& own, RunningLaunch& running) {
  own.running = &running;
  seed_order(settings.seed + own.number);
  while (!running.has_failed.load(std::memory_order_relaxed)) {
    const uint64_t first = running.next.fetch_add(running.chunk, std::memory_order_relaxed);
    if (first >= running.blocks) { break; }
    for (uint64_t i = first; i < std::min(first + running.chunk, running.blocks); ++i) {
      prepare_block(own, running, own.block, choose_block(running, i));
      run_until_waiting(own, own.block);
      if (running.has_failed.load(std::memory_order_relaxed)) { break; }
    }
    if (now_s() > running.deadline) { stop_launch(702, "the kernel did not end in time"); }
  }
  own.running = nullptr;
}

// OS threads that wait for launches; they live as long as the process.
struct Pool {
  std::mutex mutex;
  std::condition_variable came, ended;
  RunningLaunch* launch = nullptr;
  uint64_t ticket = 0;
  int wanted = 0, busy = 0;
  std::vector<pthread_t> members;

  void grow(int count) {
    while (int(members.size()) < count) {
      std::thread thread([this, number = int(members.size()) + 1, seen = ticket] { serve(number, seen); });
      members.push_back(thread.native_handle());
      thread.detach();
    }
  }

  void serve(int number, uint64_t seen) {
    auto own = std::make_unique<Worker>();
    own->number = number;
    worker = own.get();
    install_handlers(*own);
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex);
      came.wait(lock, [&] { return ticket != seen && number <= wanted; });
      seen = ticket;
      RunningLaunch* running = launch;
      lock.unlock();
      work(*own, *running);
      lock.lock();
      if (--busy == 0) { ended.notify_all(); }
    }
  }
};
Pool& pool() {
  static Pool* only = new Pool;  // never destroyed: its threads still wait when the process ends
  return *only;
}

Worker& own_worker() {
  if (worker == nullptr) {
    worker = new Worker;
    install_handlers(*worker);
  }
  return *worker;
}

// Wakes threads that run a kernel past its time: their handler abandons the block.
class Watch {
 public:
  Watch(RunningLaunch& running, std::vector<pthread_t> watched) : running_(running), watched_(std::move(watched)) {
    thread_ = std::thread([this] { watch(); });
  }
  ~Watch() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      const double left = running_.has_failed ? 0.05 : std::max(0.01, running_.deadline - now_s());
      if (changed_.wait_for(lock, std::chrono::duration<double>(left), [&] { return is_over_; })) { return; }
      if (now_s() > running_.deadline || running_.has_failed) {
        for (pthread_t thread : watched_) { pthread_kill(thread, SIGURG); }
      }
    }
  }

  RunningLaunch& running_;
  std::vector<pthread_t> watched_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

void run_cooperative(Worker& own, RunningLaunch& running) {
  struct Resident {
    std::vector<Thread> threads = std::vector<Thread>(1024);
    std::vector<Warp> warps = std::vector<Warp>(MAX_WARPS);
    std::vector<SharedSite> sites = std::vector<SharedSite>(MAX_SITES);
    std::vector<char> shared;
    Block block;
    bool has_ended = false;
  };
  own.running = &running;
  std::vector<std::unique_ptr<Resident>> residents;
  const size_t shared_bytes = size_t(harness_emulator_target.static_shared_bytes_per_block) + 4096;
  for (uint64_t i = 0; i < running.blocks; ++i) {
    auto resident = std::make_unique<Resident>();
    resident->block.threads = resident->threads.data();
    resident->block.warp = resident->warps.data();
    resident->block.sites = resident->sites.data();
    resident->shared.assign(shared_bytes + running.launch.shared_bytes + 4096, '\xff');
    char* begin = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(resident->shared.data()) + 1023) & ~uintptr_t(1023));
    prepare_block(own, running, resident->block, i);
    resident->block.static_begin = begin;
    resident->block.static_limit = shared_bytes - 1024;
    resident->block.dynamic_begin = begin + shared_bytes - 1024;
    residents.push_back(std::move(resident));
  }
  for (size_t left = residents.size(); left > 0 && !running.has_failed;) {
    for (auto& resident : residents) {
      if (resident->has_ended || running.has_failed) { continue; }
      if (!run_until_waiting(own, resident->block)) {
        resident->has_ended = true;
        --left;
      }
      if (now_s() > running.deadline) { stop_launch(702, "the kernel did not end in time"); }
    }
    for (auto& resident : residents) {
      if (!resident->has_ended) { release_grid_waiters(resident->block); }
    }
  }
  own.running = nullptr;
}

void run(RunningLaunch& running) {
  Worker& own = own_worker();
  const bool is_alone = running.launch.is_cooperative || running.blocks == 1;
#ifdef HARNESS_CHECKED
  const int workers = 1;  // the shadow memory has no locks
#else
  const int workers = is_alone ? 1 : int(std::min<uint64_t>(count_workers(), running.blocks));
#endif
  running.chunk = std::max<uint64_t>(1, std::min<uint64_t>(64, running.blocks / (uint64_t(workers) * 8)));
  Pool& others = pool();
  std::vector<pthread_t> watched{pthread_self()};
  if (workers > 1) {
    std::lock_guard<std::mutex> lock(others.mutex);
    others.grow(workers - 1);
    others.launch = &running;
    others.wanted = workers - 1;
    others.busy = workers - 1;
    ++others.ticket;
    watched.insert(watched.end(), others.members.begin(), others.members.begin() + (workers - 1));
    others.came.notify_all();
  }
  Watch watch(running, watched);
  running.launch.is_cooperative ? run_cooperative(own, running) : work(own, running);
  if (workers > 1) {
    std::unique_lock<std::mutex> lock(others.mutex);
    others.ended.wait(lock, [&] { return others.busy == 0; });
    others.wanted = 0;
  }
}

}

double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

uint64_t read_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000ull + uint64_t(now.tv_nsec);
}

Worker::Worker() : threads(1024), warps(MAX_WARPS), sites(MAX_SITES), signal_stack(64 * 1024) {
  block.threads = threads.data();
  block.warp = warps.data();
  block.sites = sites.data();
}
Worker::~Worker() = default;

void prepare_block(Worker& own, RunningLaunch& running, Block& block, uint64_t linear) {
  const Launch& launch = running.launch;
  const dim3& shape = launch.block;
  block.launch = &launch;
  block.linear_index = linear;
  block.index = {unsigned(linear % launch.grid.x), unsigned(linear / launch.grid.x % launch.grid.y),
                 unsigned(linear / launch.grid.x / launch.grid.y)};
  block.count = launch.is_plain ? 1 : shape.x * shape.y * shape.z;
  block.alive = block.count;
  block.warps = (block.count + 31) / 32;
  block.grid_waiting = 0;
  block.epoch = ++own.epoch;
  block.static_begin = own.arena.begin;
  block.static_used = 0;
  block.shared_declared = 0;
  block.static_limit = Arena::STATIC_BYTES;
  block.dynamic_bytes = launch.shared_bytes;
  block.dynamic_begin = own.arena.dynamic_end - ((launch.shared_bytes + 127) & ~size_t(127));
  if (launch.shared_bytes) { std::memset(block.dynamic_begin, 0xff, own.arena.dynamic_end - block.dynamic_begin); }
  if (launch.is_plain) {
    own.place = {{0, 0, 0}, block.index, launch.block, launch.grid};
  }
  std::memset(block.barriers, 0, sizeof block.barriers);
  block.ready_warps = block.warps == 32 ? ~0u : (1u << block.warps) - 1;
  uint32_t number = 0;
  for (uint32_t i = 0; i < block.warps; ++i) {
    const uint32_t lanes = std::min(32u, block.count - i * 32);
    block.warp[i].alive = block.warp[i].ready = lanes == 32 ? ~0u : (1u << lanes) - 1;
    block.warp[i].open = block.warp[i].busy = 0;
  }
  for (unsigned z = 0; z < shape.z; ++z) {
    for (unsigned y = 0; y < shape.y; ++y) {
      for (unsigned x = 0; x < shape.x && number < block.count; ++x, ++number) {
        block.threads[number] = Thread{{x, y, z}, &block, number, uint8_t(number & 31), uint8_t(number >> 5), false, false,
                                       nullptr, nullptr, 0, 0, 0};
      }
    }
  }
  begin_block_checks(block);
}

void configure(dim3 grid, dim3 block, size_t shared_bytes, const void*) {
  if (current != nullptr) { fail_thread(801, "uncovered", "a kernel that launches kernels"); }
  pending = {grid, block, shared_bytes, true, false};
}
void configure_cooperative() { pending.is_cooperative = true; }

bool is_only_asked_for_key() { return is_asking; }
void answer_key(const void* key, const char* kernel, Bounds bounds) { asked = {key, kernel, bounds}; }
void begin_asking() { is_asking = true; }
KernelKey end_asking() {
  is_asking = false;
  return asked;
}

void allow_shared(const void* key, int bytes) {
  std::lock_guard<std::mutex> lock(attributes_mutex);
  allowed_shared[key] = bytes;
}

void stop_launch(int error, const std::string& message) {
  RunningLaunch& running = *worker->running;
  std::lock_guard<std::mutex> lock(running.mutex);
  if (!running.has_failed) { running.stopped = {error, message}; }
  running.has_failed = true;
}

void start(Launch& launch, const void* key, Bounds bounds) {
  if (!pending.is_set) { throw std::runtime_error(std::string("kernel ") + launch.kernel + " is called without a launch"); }
  launching = launch.kernel;
  launch.grid = pending.grid;
  launch.block = pending.block;
  launch.shared_bytes = pending.shared_bytes;
  launch.is_cooperative = pending.is_cooperative;
  pending = Pending{};
  if (!check_shape(launch, bounds) || !check_shared(launch, key)) { return; }
  const uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  const Target& target = harness_emulator_target;
  const uint64_t threads = uint64_t(launch.block.x) * launch.block.y * launch.block.z;
  const uint64_t resident = std::min<uint64_t>(target.max_threads_per_multiprocessor / threads, target.max_blocks_per_multiprocessor);
  if (launch.is_cooperative && blocks > resident * target.multiprocessors) {
    fail_launch(launch, 720, "cooperative_launch", std::string("more blocks than fit on ") + target.name + " at once");
    return;
  }
  if (settings.launches_only) { return; }
  RunningLaunch running;
  running.launch = launch;
  running.blocks = blocks;
  running.deadline = now_s() + settings.time_limit_s;
  set_order(running);
  begin_checks(running);
  Thread* outer = current;
  {
    const OutOfReach host;
    run(running);
  }
  current = outer;
  if (!running.has_failed) { return; }
  set_error(running.stopped.error);
  throw std::runtime_error(std::string("CUDA error: ") + error_text(running.stopped.error) + "\nkernel " + launch.kernel +
                           ", emulated: " + running.stopped.message);
}

}
