// Groups of threads: blocks, tiles of a warp, the lanes that are here, the grid.
#pragma once
#include <emulator/device_core.h>

namespace cooperative_groups {
namespace detail = ::harness_emulator;

class thread_group {
 public:
  thread_group(unsigned size, unsigned rank, unsigned mask) : size_(size), rank_(rank), mask_(mask) {}
  unsigned size() const { return size_; }
  unsigned num_threads() const { return size_; }
  unsigned thread_rank() const { return rank_; }
  void sync(HARNESS_LINE) const {
    if (mask_ == 0) {
      detail::wait_at_barrier(0, 0, 0, 0, harness_line);
    } else {
      detail::meet_only(mask_, harness_line);
    }
  }
  unsigned harness_mask() const { return mask_; }

 protected:
  unsigned size_, rank_, mask_;  // no mask: the whole block
};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(detail::current->block->count, detail::current->linear, 0) {}
  static void sync(HARNESS_LINE) { detail::wait_at_barrier(0, 0, 0, 0, harness_line); }
  static unsigned size() { return detail::current->block->count; }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() { return detail::current->linear; }
  static dim3 group_index() { return detail::current->block->index; }
  static dim3 thread_index() { return detail::current->thread; }
  static dim3 group_dim() { return detail::current->block->launch->block; }
  static dim3 dim_threads() { return group_dim(); }
};
inline thread_block this_thread_block() { return {}; }

// Lanes of one warp; `first` is the lane of rank 0 of a tile.
class harness_lanes : public thread_group {
 public:
  using thread_group::thread_group;
  int any(int predicate, HARNESS_LINE) const { return detail::vote(mask_, predicate != 0, harness_line) != 0; }
  int all(int predicate, HARNESS_LINE) const { return detail::vote(mask_, predicate == 0, harness_line) == 0; }

 protected:
  // Bits of lanes as bits of ranks.
  unsigned to_ranks(unsigned lanes) const {
    unsigned bits = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, ++rank) { bits |= (lanes >> __builtin_ctz(left) & 1u) << rank; }
    return bits;
  }
  int lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (unsigned i = 0; i < rank && left; ++i) { left &= left - 1; }
    return left ? __builtin_ctz(left) : 0;
  }

 public:
  unsigned ballot(int predicate, HARNESS_LINE) const { return to_ranks(detail::vote(mask_, predicate != 0, harness_line)); }
  template <typename T>
  unsigned match_any(T value, HARNESS_LINE) const { return to_ranks(detail::match(mask_, value, harness_line)); }
  template <typename T>
  unsigned match_all(T value, int& predicate, HARNESS_LINE) const {
    const unsigned equal = detail::match(mask_, value, harness_line);
    predicate = equal == mask_;
    return predicate ? to_ranks(equal) : 0;
  }
  template <typename T>
  T shfl(T value, unsigned rank, HARNESS_LINE) const {
    return detail::shuffle_from(mask_, value, lane_of(rank % size_), true, harness_line);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, HARNESS_LINE) const {
    const unsigned rank = rank_ + delta;
    return detail::shuffle_from(mask_, value, lane_of(rank), rank < size_, harness_line);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, HARNESS_LINE) const {
    const bool inside = rank_ >= delta;
    return detail::shuffle_from(mask_, value, lane_of(inside ? rank_ - delta : 0), inside, harness_line);
  }
  template <typename T>
  T shfl_xor(T value, unsigned bits, HARNESS_LINE) const {
    const unsigned rank = rank_ ^ bits;
    return detail::shuffle_from(mask_, value, lane_of(rank), rank < size_, harness_line);
  }
};

template <unsigned Size, typename Parent = void>
class thread_block_tile : public harness_lanes {
 public:
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile is a power of two, of one warp at most, on this device");
  thread_block_tile()
      : harness_lanes(Size, detail::current->lane % Size,
                      (Size == 32 ? ~0u : (1u << (Size % 32)) - 1u) << (detail::current->lane / Size * Size)) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned meta_group_size() const { return (detail::current->block->count + Size - 1) / Size; }
  unsigned meta_group_rank() const { return detail::current->linear / Size; }
};
template <unsigned Size, typename Group>
thread_block_tile<Size, Group> tiled_partition(const Group&) { return {}; }

class coalesced_group : public harness_lanes {
 public:
  coalesced_group(unsigned mask)
      : harness_lanes(unsigned(__builtin_popcount(mask)), unsigned(__builtin_popcount(mask & ((1u << detail::current->lane) - 1u))), mask) {}
  unsigned meta_group_size() const { return 1; }
  unsigned meta_group_rank() const { return 0; }
};
// Which lanes are here is known only by waiting for those of the warp that can come.
inline coalesced_group coalesced_threads(HARNESS_LINE) { return coalesced_group(detail::lanes_here(harness_line)); }
template <typename Group, typename T>
coalesced_group labeled_partition(const Group& group, T label, HARNESS_LINE) {
  return coalesced_group(detail::match(group.harness_mask(), label, harness_line));
}
template <typename Group>
coalesced_group binary_partition(const Group& group, bool predicate, HARNESS_LINE) {
  return coalesced_group(detail::match(group.harness_mask(), int(predicate), harness_line));
}
inline thread_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned first = detail::current->lane / size * size;
  return {size, detail::current->lane % size, (size == 32 ? ~0u : (1u << size) - 1u) << first};
}

class grid_group {
 public:
  void sync(HARNESS_LINE) const { detail::wait_for_grid(harness_line); }
  static bool is_valid() { return detail::current->block->launch->is_cooperative; }
  static unsigned long long size() { return num_blocks() * detail::current->block->count; }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() {
    const dim3& grid = detail::current->block->launch->grid;
    return static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
  }
  static unsigned long long block_rank() { return detail::current->block->linear_index; }
  static unsigned long long thread_rank() { return block_rank() * detail::current->block->count + detail::current->linear; }
  static dim3 group_dim() { return detail::current->block->launch->grid; }
  static dim3 dim_blocks() { return group_dim(); }
  static dim3 block_index() { return detail::current->block->index; }
};
inline grid_group this_grid() { return {}; }

template <typename Group>
void sync(const Group& group, HARNESS_LINE) { group.sync(harness_line); }
inline void sync(const thread_block&, HARNESS_LINE) { thread_block::sync(harness_line); }
template <typename Group>
auto group_size(const Group& group) { return group.size(); }
template <typename Group>
auto thread_rank(const Group& group) { return group.thread_rank(); }

// Copies that are waited for with wait(): done by the group's threads at once.
template <typename Group, typename T, typename U>
void memcpy_async(const Group& group, T* to, const U* from, size_t bytes) {
  for (size_t i = group.thread_rank(); i < bytes; i += group.size()) { reinterpret_cast<char*>(to)[i] = reinterpret_cast<const char*>(from)[i]; }
}
template <typename Group>
void wait(const Group& group, HARNESS_LINE) { group.sync(harness_line); }
template <unsigned Stages, typename Group>
void wait_prior(const Group& group, HARNESS_LINE) { group.sync(harness_line); }
template <typename Group, typename F>
void invoke_one(const Group& group, F&& f) { if (group.thread_rank() == 0) { f(); } }
}
