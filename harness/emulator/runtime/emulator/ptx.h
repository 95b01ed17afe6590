// What instructions of inline PTX do. Fragments of matrices lie over the lanes as the PTX manual lays them out.
#pragma once
#include "bfloat16.h"
#include "core.h"
#include "warp.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
namespace ptx {

// Bits from one type to another; numbers of other sizes as a cast would. By value, for pointers may be __restrict__.
template <typename To, typename From>
To take(From value) {
  if constexpr (std::is_pointer<From>::value) {
    return static_cast<To>(reinterpret_cast<uintptr_t>(value));
  } else if constexpr (sizeof(To) == sizeof(From)) {
    return cast_bits<To>(value);
  } else {
    return static_cast<To>(value);
  }
}
template <typename To, typename From>
void give(To& place, const From& value) {
  if constexpr (std::is_pointer<To>::value) {
    place = reinterpret_cast<To>(uintptr_t(value));
  } else {
    place = take<To>(value);
  }
}

inline char* shared(uint64_t offset) { return current->block->static_begin + uint32_t(offset); }
inline char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }
inline void copy(char* to, const char* from, int64_t bytes, int64_t valid = -1) {
  if (valid < 0) { valid = bytes; }
  if (uintptr_t(to) % size_t(bytes) || (valid && uintptr_t(from) % size_t(bytes))) {
    fail_thread(716, "misaligned", "cp.async from or to an address that is no multiple of its size");
  }
  for (int64_t i = 0; i < bytes; i += 4) { *reinterpret_cast<uint32_t*>(to + i) = i < valid ? *reinterpret_cast<const uint32_t*>(from + i) : 0u; }
}
template <typename T, typename... Out>
void load(const char* from, Out&... out) {
  if (uintptr_t(from) % (sizeof(T) * sizeof...(Out))) { fail_thread(716, "misaligned", "a vector load at an address that is no multiple of its size"); }
  const T* at = reinterpret_cast<const T*>(from);
  (give(out, *at++), ...);
}
template <typename T, typename... In>
void store(char* to, const In&... in) {
  if (uintptr_t(to) % (sizeof(T) * sizeof...(In))) { fail_thread(716, "misaligned", "a vector store at an address that is no multiple of its size"); }
  T* at = reinterpret_cast<T*>(to);
  ((*at++ = take<T>(in)), ...);
}
template <typename... Out>
void spread(const uint32_t* from, Out&... out) { (give(out, *from++), ...); }

// A word of parts, the lowest first; and its parts.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
template <typename To, typename... From>
void pack(To& place, const From&... parts) {
  constexpr size_t BITS = 8 * sizeof(To) / sizeof...(From);
  uint64_t word = 0;
  size_t at = 0;
  const auto add = [&](const auto& part) {
    word |= uint64_t(take<Bits<std::decay_t<decltype(part)>>>(part)) << at;
    at += BITS;
  };
  (add(parts), ...);
  place = take<To>(Bits<To>(word));
}
template <typename From, typename... To>
void unpack(const From& word, To&... parts) {
  constexpr size_t BITS = 8 * sizeof(From) / sizeof...(To);
  uint64_t left = take<Bits<From>>(word);
  const auto next = [&](auto& part) {
    give(part, Bits<std::decay_t<decltype(part)>>(left));
    left >>= BITS;
  };
  (next(parts), ...);
}
template <typename Small>
uint32_t pack_two(float low, float high) {
  return uint32_t(Small::harness_from(low).harness_bits()) | uint32_t(Small::harness_from(high).harness_bits()) << 16;
}
inline uint32_t to_tf32(float value) { return (cast_bits<uint32_t>(value) + 0x1000u) & 0xffffe000u; }

// Eight rows of eight halves each; lane i of the first 8 (16, 24, 32) lanes has the address of row i.
template <bool Transposed, typename... Out>
void load_matrix(const char* row, int line, Out&... out) {
  uint32_t result[4];
  exchange(ALL_LANES, reinterpret_cast<uint64_t>(row), line, [&](auto of_lane, uint32_t) {
    const int lane = own_lane();
    for (int m = 0; m < int(sizeof...(Out)); ++m) {
      uint32_t word = 0;
      for (int half = 0; half < 2; ++half) {
        const int r = Transposed ? lane % 4 * 2 + half : lane / 4, c = Transposed ? lane / 4 : lane % 4 * 2 + half;
        const auto* from = reinterpret_cast<const uint16_t*>(of_lane(m * 8 + r));
        word |= uint32_t(from[c]) << (16 * half);
      }
      result[m] = word;
    }
    return 0;
  });
  const uint32_t* next = result;
  ((out = *next++), ...);
}

// Elements of a fragment: `value(word, index within it)`, as many in a word as fit.
struct f16 {
  static constexpr int PER_WORD = 2;
  static float value(uint32_t word, int i) { return half_value(uint16_t(word >> (16 * i))); }
};
struct bf16 {
  static constexpr int PER_WORD = 2;
  static float value(uint32_t word, int i) { return cast_bits<float>((word >> (16 * i)) << 16); }
};
struct tf32 {
  static constexpr int PER_WORD = 1;
  static float value(uint32_t word, int) { return cast_bits<float>(word & 0xffffe000u); }
};
struct s8 {
  static constexpr int PER_WORD = 4;
  static int32_t value(uint32_t word, int i) { return int8_t(word >> (8 * i)); }
};
struct u8 {
  static constexpr int PER_WORD = 4;
  static int32_t value(uint32_t word, int i) { return uint8_t(word >> (8 * i)); }
};

// D = A B + C for 16 x K times K x 8. A lane holds, of A, rows lane/4 and lane/4+8; words alternate between the rows, and
// then go on along K by four words' worth; of B, column lane/4, the same way; of C and D, columns 2 (lane % 4) and the next.
template <typename Element, typename Sum, int K>
void multiply(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int line) {
  constexpr int PER = Element::PER_WORD, STEPS = K / (4 * PER);
  static_assert(STEPS >= 1 && STEPS <= 2, "K of the documented shapes");
  uint32_t own[8] = {};
  for (int i = 0; i < 2 * STEPS; ++i) { own[i] = a[i]; }
  for (int i = 0; i < STEPS; ++i) { own[4 + i] = b[i]; }
  uint32_t all[32][8];
  for (int word = 0; word < 3; ++word) {
    struct Two { uint64_t x, y; } two{own[2 * word] | uint64_t(own[2 * word + 1]) << 32, 0};
    exchange(ALL_LANES, two, line, [&](auto of_lane, uint32_t) {
      for (int lane = 0; lane < 32; ++lane) {
        const Two found = of_lane(lane);
        all[lane][2 * word] = uint32_t(found.x);
        all[lane][2 * word + 1] = uint32_t(found.x >> 32);
      }
      return 0;
    });
  }
  const int lane = own_lane();
  for (int i = 0; i < 4; ++i) {
    const int upper = i / 2, column = lane % 4 * 2 + i % 2;
    using Wide = std::conditional_t<std::is_integral<Sum>::value, int64_t, double>;
    Wide sum = 0;
    for (int step = 0; step < STEPS; ++step) {
      for (int group = 0; group < 4; ++group) {
        for (int e = 0; e < PER; ++e) {
          const auto x = Element::value(all[lane / 4 * 4 + group][2 * step + upper], e);
          const auto y = Element::value(all[column * 4 + group][4 + step], e);
          sum += Wide(x) * Wide(y);
        }
      }
    }
    if constexpr (std::is_same<Sum, __half>::value) {
      const __half total = __half::harness_from(float(sum) + half_value(uint16_t(c[i / 2] >> (16 * (i % 2)))));
      d[i / 2] = i % 2 ? d[i / 2] | uint32_t(total.harness_bits()) << 16 : total.harness_bits();
    } else {
      d[i] = cast_bits<uint32_t>(Sum(sum + Wide(cast_bits<Sum>(c[i]))));
    }
  }
}

}
}
