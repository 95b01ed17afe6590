// Barriers, and what the lanes of a warp do together: shuffles, votes, matches, reductions.
#pragma once
#include "core.h"

#define HARNESS_LINE int harness_line = __builtin_LINE()

inline void __syncthreads(HARNESS_LINE) { harness_emulator::wait_at_barrier(0, 0, 0, 0, harness_line); }
inline int __syncthreads_or(int predicate, HARNESS_LINE) { return harness_emulator::wait_at_barrier(0, 0, 1, predicate, harness_line); }
inline int __syncthreads_and(int predicate, HARNESS_LINE) { return harness_emulator::wait_at_barrier(0, 0, 2, predicate, harness_line); }
inline int __syncthreads_count(int predicate, HARNESS_LINE) { return harness_emulator::wait_at_barrier(0, 0, 3, predicate, harness_line); }

namespace harness_emulator __attribute__((visibility("hidden"))) {

constexpr uint32_t ALL_LANES = 0xffffffffu;

// A value of up to 16 bytes, as the two words that lanes exchange.
struct Words {
  uint64_t low = 0, high = 0;
};
template <typename T>
Words pack(const T& value) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable<T>::value, "lanes exchange plain values of up to 16 bytes");
  Words words;
  std::memcpy(&words, &value, sizeof(T));
  return words;
}
template <typename T>
T unpack(uint64_t low, uint64_t high) {
  const Words words{low, high};
  T value;
  std::memcpy(static_cast<void*>(&value), &words, sizeof(T));
  return value;
}

// What the lanes of a finished meeting brought. What an absent lane would have brought is all ones (NaN).
template <typename T, typename Use>
auto exchange(uint32_t mask, const T& value, int line, Use&& use, Operation operation = Operation::other) {
  const Words words = pack(value);
  Meeting& meeting = meet(mask, words.low, words.high, line, operation);
  const auto of_lane = [&meeting](int lane) {
    return meeting.arrived >> lane & 1u ? unpack<T>(meeting.value[lane], meeting.more[lane]) : unpack<T>(~0ull, ~0ull);
  };
  auto result = use(of_lane, meeting.arrived);
  leave(meeting);
  return result;
}

inline int own_lane() { return current->lane; }
void note_absent_source(bool may_be_unused, int lane, int line);

template <typename T>
T shuffle_from(uint32_t mask, const T& value, int source, bool is_inside, int line, bool is_neighbour = false) {
  return exchange(mask, value, line, [&](auto of_lane, uint32_t arrived) -> T {
    if (!is_inside) { return value; }
    if (!(arrived >> source & 1u)) { note_absent_source(is_neighbour && !(mask >> source & 1u), source, line); }
    return of_lane(source);
  }, Operation::shuffle);
}

template <typename T>
T shuffle(uint32_t mask, const T& value, int lane, int width, int line) {
  const int first = own_lane() & ~(width - 1);
  return shuffle_from(mask, value, first + (lane & (width - 1)), true, line);
}
template <typename T>
T shuffle_up(uint32_t mask, const T& value, unsigned delta, int width, int line) {
  const int first = own_lane() & ~(width - 1), source = own_lane() - int(delta & 31u);
  return shuffle_from(mask, value, source, source >= first && delta < 32, line, true);
}
template <typename T>
T shuffle_down(uint32_t mask, const T& value, unsigned delta, int width, int line) {
  const int last = own_lane() | (width - 1), source = own_lane() + int(delta & 31u);
  return shuffle_from(mask, value, source, source <= last && delta < 32, line, true);
}
template <typename T>
T shuffle_xor(uint32_t mask, const T& value, int bits, int width, int line) {
  const int last = own_lane() | (width - 1), source = own_lane() ^ (bits & 31);
  return shuffle_from(mask, value, source, source <= last, line);
}

template <typename T, typename Join>
T reduce(uint32_t mask, const T& value, int line, Join&& join) {
  return exchange(mask, value, line, [&](auto of_lane, uint32_t arrived) -> T {
    T result = of_lane(__builtin_ctz(arrived));
    for (uint32_t left = arrived & (arrived - 1); left; left &= left - 1) { result = join(result, of_lane(__builtin_ctz(left))); }
    return result;
  }, Operation::reduce);
}
inline uint32_t vote(uint32_t mask, bool predicate, int line) {
  return exchange(mask, int(predicate), line, [](auto of_lane, uint32_t arrived) {
    uint32_t bits = 0;
    for (uint32_t left = arrived; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      if (of_lane(lane)) { bits |= 1u << lane; }
    }
    return bits;
  }, Operation::vote);
}
template <typename T>
uint32_t match(uint32_t mask, const T& value, int line) {
  return exchange(mask, value, line, [&](auto of_lane, uint32_t arrived) {
    uint32_t bits = 0;
    for (uint32_t left = arrived; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const T other = of_lane(lane);
      if (std::memcmp(&other, &value, sizeof(T)) == 0) { bits |= 1u << lane; }
    }
    return bits;
  }, Operation::match);
}
inline void meet_only(uint32_t mask, int line) { leave(meet(mask, 0, 0, line, Operation::wait)); }

// Types that CUDA's own shuffles take.
template <typename T>
struct IsExchangeable : std::integral_constant<bool, std::is_same<T, int>::value || std::is_same<T, unsigned>::value ||
    std::is_same<T, long>::value || std::is_same<T, unsigned long>::value || std::is_same<T, long long>::value ||
    std::is_same<T, unsigned long long>::value || std::is_same<T, float>::value || std::is_same<T, double>::value> {};
// Smaller integers become int on the way, as in a call of an overload.
template <typename T>
using Exchanged = std::conditional_t<std::is_integral<T>::value && sizeof(T) < sizeof(int), int, T>;

}

inline void __syncwarp(unsigned mask = 0xffffffffu, HARNESS_LINE) { harness_emulator::meet_only(mask, harness_line); }

#define HARNESS_SHUFFLE(Name, Run, Argument)                                                                            \
  template <typename T, typename = std::enable_if_t<harness_emulator::IsExchangeable<harness_emulator::Exchanged<T>>::value>> \
  harness_emulator::Exchanged<T> Name(unsigned mask, T value, Argument argument, int width = 32, HARNESS_LINE) {        \
    return harness_emulator::Run<harness_emulator::Exchanged<T>>(mask, value, argument, width, harness_line);           \
  }
HARNESS_SHUFFLE(__shfl_sync, shuffle, int)
HARNESS_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
HARNESS_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
HARNESS_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)

inline int __all_sync(unsigned mask, int predicate, HARNESS_LINE) {
  return harness_emulator::reduce(mask, int(predicate != 0), harness_line, [](int a, int b) { return a & b; });
}
inline int __any_sync(unsigned mask, int predicate, HARNESS_LINE) { return harness_emulator::vote(mask, predicate != 0, harness_line) != 0; }
inline unsigned __ballot_sync(unsigned mask, int predicate, HARNESS_LINE) {
  return harness_emulator::vote(mask, predicate != 0, harness_line);
}
inline unsigned __activemask(HARNESS_LINE) { return harness_emulator::lanes_here(harness_line); }
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, HARNESS_LINE) { return harness_emulator::match(mask, value, harness_line); }
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate, HARNESS_LINE) {
  const unsigned equal = harness_emulator::match(mask, value, harness_line);
  *predicate = equal == mask;
  return equal == mask ? mask : 0;
}
#define HARNESS_REDUCE(Name, T, Expression)                                                                          \
  inline T Name(unsigned mask, T value, HARNESS_LINE) {                                                              \
    return harness_emulator::reduce(mask, value, harness_line, [](T a, T b) -> T { return Expression; });            \
  }
HARNESS_REDUCE(__reduce_add_sync, unsigned, a + b)
HARNESS_REDUCE(__reduce_add_sync, int, int(unsigned(a) + unsigned(b)))
HARNESS_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
HARNESS_REDUCE(__reduce_min_sync, int, a < b ? a : b)
HARNESS_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
HARNESS_REDUCE(__reduce_max_sync, int, a > b ? a : b)
HARNESS_REDUCE(__reduce_and_sync, unsigned, a & b)
HARNESS_REDUCE(__reduce_or_sync, unsigned, a | b)
HARNESS_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

inline void __threadfence(HARNESS_LINE);
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
namespace harness_emulator __attribute__((visibility("hidden"))) { void note_fence(); }
inline void __threadfence(int) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  harness_emulator::note_fence();
}
inline void __nanosleep(unsigned) { harness_emulator::yield_after_failure(); }
inline void __trap() { harness_emulator::fail_thread(719, "trap", "the kernel calls __trap()", 0); }
inline void __brkpt() {}
inline void __prof_trigger(int) {}
inline long long clock64() { return static_cast<long long>(harness_emulator::read_clock()); }
inline long clock() { return static_cast<long>(harness_emulator::read_clock()); }
inline unsigned long long __globaltimer() { return harness_emulator::read_clock(); }
inline bool __isGlobal(const void*) { return true; }
