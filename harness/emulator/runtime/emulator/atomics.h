// Atomic operations on memory of any kind. Other threads may be on other OS threads, so they are atomic in earnest.
#pragma once
#include "core.h"

// In a checked build the place that is noted must be the candidate's own.
#define HARNESS_ATOMIC_INLINE inline __attribute__((always_inline))

namespace harness_emulator __attribute__((visibility("hidden"))) {

void note_atomic(const void* address, size_t bytes);

template <typename Word, typename T>
T as_value(Word word) {
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  return value;
}
template <typename T>
using WordOf = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// Replaces *address by change(*address); returns what was there.
template <typename T, typename Change>
HARNESS_ATOMIC_INLINE T change_atomically(T* address, Change&& change) {
  using Word = WordOf<T>;
  note_atomic(address, sizeof(T));
  count_access();
  auto* place = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(place, __ATOMIC_RELAXED);
  for (;;) {
    const T before = as_value<Word, T>(old);
    const T after = change(before);
    Word wanted;
    std::memcpy(&wanted, &after, sizeof(T));
    if (__atomic_compare_exchange_n(place, &old, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) { return before; }
  }
}
template <typename T>
HARNESS_ATOMIC_INLINE T compare_and_swap(T* address, T compare, T value) {
  using Word = WordOf<T>;
  note_atomic(address, sizeof(T));
  count_access();
  Word expected, wanted;
  std::memcpy(&expected, &compare, sizeof(T));
  std::memcpy(&wanted, &value, sizeof(T));
  const bool done = __atomic_compare_exchange_n(reinterpret_cast<Word*>(address), &expected, wanted, false, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST);
  if (!done) { yield_after_failure(); }
  return as_value<Word, T>(expected);
}

}

#define HARNESS_ATOMIC(Name, T, Expression)                                                               \
  HARNESS_ATOMIC_INLINE T Name(T* address, T value) {                                                                    \
    return harness_emulator::change_atomically(address, [value](T old) -> T { return Expression; });      \
  }
#define HARNESS_ATOMIC_SCOPED(Name)                                                                       \
  template <typename T, typename V>                                                                       \
  T Name##_block(T* address, V value) { return Name(address, static_cast<T>(value)); }                    \
  template <typename T, typename V>                                                                       \
  T Name##_system(T* address, V value) { return Name(address, static_cast<T>(value)); }

#define HARNESS_ATOMIC_INTEGERS(Name, Expression) \
  HARNESS_ATOMIC(Name, int, Expression)           \
  HARNESS_ATOMIC(Name, unsigned int, Expression)  \
  HARNESS_ATOMIC(Name, unsigned long long, Expression)

HARNESS_ATOMIC_INLINE int atomicAdd(int* address, int value) {
  return harness_emulator::change_atomically(address, [value](int old) { return int(unsigned(old) + unsigned(value)); });
}
HARNESS_ATOMIC(atomicAdd, unsigned int, old + value)
HARNESS_ATOMIC(atomicAdd, unsigned long long, old + value)
HARNESS_ATOMIC(atomicAdd, float, old + value)
HARNESS_ATOMIC(atomicAdd, double, old + value)
HARNESS_ATOMIC_INLINE int atomicSub(int* address, int value) { return atomicAdd(address, int(0u - unsigned(value))); }
HARNESS_ATOMIC(atomicSub, unsigned int, old - value)
HARNESS_ATOMIC_INTEGERS(atomicExch, ((void)old, value))
HARNESS_ATOMIC(atomicExch, float, ((void)old, value))
HARNESS_ATOMIC_INTEGERS(atomicMin, (old < value ? old : value))
HARNESS_ATOMIC(atomicMin, long long, (old < value ? old : value))
HARNESS_ATOMIC_INTEGERS(atomicMax, (old > value ? old : value))
HARNESS_ATOMIC(atomicMax, long long, (old > value ? old : value))
HARNESS_ATOMIC_INTEGERS(atomicAnd, old & value)
HARNESS_ATOMIC_INTEGERS(atomicOr, old | value)
HARNESS_ATOMIC_INTEGERS(atomicXor, old ^ value)
HARNESS_ATOMIC(atomicInc, unsigned int, (old >= value ? 0u : old + 1u))
HARNESS_ATOMIC(atomicDec, unsigned int, (old == 0u || old > value ? value : old - 1u))
HARNESS_ATOMIC_SCOPED(atomicAdd)
HARNESS_ATOMIC_SCOPED(atomicSub)
HARNESS_ATOMIC_SCOPED(atomicExch)
HARNESS_ATOMIC_SCOPED(atomicMin)
HARNESS_ATOMIC_SCOPED(atomicMax)
HARNESS_ATOMIC_SCOPED(atomicAnd)
HARNESS_ATOMIC_SCOPED(atomicOr)
HARNESS_ATOMIC_SCOPED(atomicXor)

#define HARNESS_CAS(T)                                                                                       \
  HARNESS_ATOMIC_INLINE T atomicCAS(T* address, T compare, T value) {                                                       \
    return harness_emulator::compare_and_swap(address, compare, value);                                      \
  }                                                                                                          \
  inline T atomicCAS_block(T* address, T compare, T value) { return atomicCAS(address, compare, value); }    \
  inline T atomicCAS_system(T* address, T compare, T value) { return atomicCAS(address, compare, value); }
HARNESS_CAS(int)
HARNESS_CAS(unsigned int)
HARNESS_CAS(unsigned long long)
HARNESS_CAS(unsigned short)
