// Memory of tensors and of cudaMalloc: each piece ends, rounded up to 512 bytes as on a GPU, at a guard page, and begins
// filled with ones (NaN), since what was never written has no value. In a checked build it ends at its last byte.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <typeinfo>

#include "worker.h"

namespace harness_emulator {

namespace {

thread_local volatile int locks_held __attribute__((tls_model("initial-exec"))) = 0;

// A block that is abandoned within would keep the lock, see `may_leave`.
class Locked {
 public:
  explicit Locked(std::mutex& mutex) : mutex_(mutex) {
    locks_held = locks_held + 1;
    mutex_.lock();
  }
  ~Locked() {
    mutex_.unlock();
    locks_held = locks_held - 1;
  }

 private:
  std::mutex& mutex_;
};

struct Piece {
  size_t bytes;
  char* mapped;  // null where somebody else has allocated it
  size_t mapped_bytes;
  bool is_on_gpu = false;  // surely: a tensor of the GPU
};

class Pieces {
 public:
  void* allocate(size_t bytes) {
    const size_t rounded = (std::max<size_t>(bytes, 1) + granule() - 1) / granule() * granule();
    const size_t mapped_bytes = (rounded + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + 2 * PAGE_BYTES;
    void* found = mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) { return nullptr; }
    char* mapped = static_cast<char*>(found);
    if (mprotect(mapped + PAGE_BYTES, mapped_bytes - 2 * PAGE_BYTES, PROT_READ | PROT_WRITE) != 0) {
      munmap(mapped, mapped_bytes);
      return nullptr;
    }
    if (mapped_bytes > (4u << 20)) { madvise(mapped + PAGE_BYTES, mapped_bytes - 2 * PAGE_BYTES, MADV_HUGEPAGE); }
    char* begin = mapped + mapped_bytes - PAGE_BYTES - rounded;
    std::memset(begin, 0xff, rounded);
    const Locked lock(mutex_);
    pieces_[begin] = {bytes, mapped, mapped_bytes};
    return begin;
  }

  bool release(void* pointer) {
    Piece piece;
    {
      const Locked lock(mutex_);
      const auto found = pieces_.find(static_cast<char*>(pointer));
      if (found == pieces_.end() || found->second.mapped == nullptr) { return false; }
      piece = found->second;
      pieces_.erase(found);
    }
    munmap(piece.mapped, piece.mapped_bytes);
    return true;
  }

  bool find(const void* pointer, const char** begin, size_t* bytes) {
    const Locked lock(mutex_);
    const auto* found = holder(pointer);
    if (found == nullptr) { return false; }
    *begin = found->first;
    *bytes = found->second.bytes;
    return true;
  }

  bool is_on_gpu(const void* pointer) {
    const Locked lock(mutex_);
    const auto* found = holder(pointer);
    return found != nullptr && found->second.is_on_gpu;
  }

  // Others' memory is left out: nobody says when it is released.
  void place_on_gpu(const void* pointer) {
    const Locked lock(mutex_);
    auto* found = holder(pointer);
    if (found != nullptr && found->second.mapped != nullptr) { found->second.is_on_gpu = true; }
  }

  void know(const void* begin, size_t bytes) {
    const char* known = nullptr;
    size_t known_bytes = 0;
    if (bytes == 0 || find(begin, &known, &known_bytes)) { return; }
    const Locked lock(mutex_);
    pieces_[static_cast<char*>(const_cast<void*>(begin))] = {bytes, nullptr, 0};
  }

  void forget(const void* begin) {
    const Locked lock(mutex_);
    pieces_.erase(static_cast<char*>(const_cast<void*>(begin)));
  }

 private:
  // CUDA's caching allocator gives 512 bytes at least; a checked build keeps what vector loads need, and no more.
  static size_t granule() {
#ifdef HARNESS_CHECKED
    return 64;
#else
    return 512;
#endif
  }
  std::pair<char* const, Piece>* holder(const void* pointer) {
    auto found = pieces_.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
    if (found == pieces_.begin()) { return nullptr; }
    --found;
    return static_cast<const char*>(pointer) < found->first + found->second.bytes ? &*found : nullptr;
  }
  std::mutex mutex_;
  std::map<char*, Piece> pieces_;
};

Pieces& pieces() {
  static Pieces* only = new Pieces;
  return *only;
}

// torch's allocator for tensors on the CPU, while an extension of this kind is loaded.
class GuardingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* found = bytes ? pieces().allocate(bytes) : nullptr;
    if (bytes && !found) { TORCH_CHECK(false, "CUDA out of memory (emulated): tried to allocate ", bytes, " bytes"); }
    return {found, found, &GuardingAllocator::forget, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &GuardingAllocator::forget; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void forget(void* pointer) { pieces().release(pointer); }
};

}

void* allocate_device(size_t bytes) { return pieces().allocate(bytes); }
bool release_device(void* pointer) { return pieces().release(pointer); }
bool find_device(const void* pointer, const char** begin, size_t* bytes) { return pieces().find(pointer, begin, bytes); }
bool may_leave() { return locks_held == 0; }
bool is_on_gpu(const void* pointer) { return pieces().is_on_gpu(pointer); }
void know_memory(const void* begin, size_t bytes) { pieces().know(begin, bytes); }
void forget_memory(const void* begin) { pieces().forget(begin); }
void copy_bytes(void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }
void fill_bytes(void* to, int value, size_t bytes) { std::memset(to, value, bytes); }
void use_own_allocator() {
  static GuardingAllocator* only = new GuardingAllocator;
  c10::SetCPUAllocator(only, 100);
}

}

// The memory that holds this address is a tensor's on the GPU, which host code cannot reach.
extern "C" __attribute__((visibility("default"))) void harness_emulator_place_on_gpu(const void* pointer) {
  harness_emulator::pieces().place_on_gpu(pointer);
}
extern "C" __attribute__((visibility("default"))) int harness_emulator_is_checked() {
#ifdef HARNESS_CHECKED
  return 1;
#else
  return 0;
#endif
}
