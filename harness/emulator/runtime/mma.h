// Matrix fragments of a warp. Element i of lane l is number l * num_elements + i of the matrix, by rows; lanes read each
// other's fragments while all of them wait.
#pragma once
#include <cuda_fp16.h>
#include <emulator/device_core.h>

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

namespace harness_shape {
template <typename T>
struct Stored {
  using type = T;
};
template <>
struct Stored<precision::tf32> {
  using type = float;
};
template <typename Use, int M, int N, int K>
struct Size;
template <int M, int N, int K>
struct Size<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct Size<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct Size<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};
}

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment {
 public:
  static_assert((M == 16 && N == 16 && (K == 16 || K == 8)) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16) ||
                    (M == 8 && N == 8 && K == 4),
                "the documented shapes");
  using element_type = T;
  using storage_element_type = typename harness_shape::Stored<T>::type;
  static constexpr int rows = harness_shape::Size<Use, M, N, K>::rows, columns = harness_shape::Size<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32, num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

namespace harness_shape {
// Where element i of this lane lies in memory.
template <typename F>
size_t place(int i, unsigned leading, bool by_rows) {
  const int number = ::harness_emulator::current->lane * F::num_elements + i, r = number / F::columns, c = number % F::columns;
  return by_rows ? size_t(r) * leading + c : size_t(c) * leading + r;
}
template <typename F>
auto element(const F* of_lane_0_to_31[32], int r, int c) {
  const int number = r * F::columns + c;
  return of_lane_0_to_31[number / F::num_elements]->x[number % F::num_elements];
}
template <typename F>
void gather(const F& own, const F* all[32], int line) {
  ::harness_emulator::exchange(::harness_emulator::ALL_LANES, reinterpret_cast<uint64_t>(&own), line, [&](auto of_lane, uint32_t) {
    for (int lane = 0; lane < 32; ++lane) { all[lane] = reinterpret_cast<const F*>(of_lane(lane)); }
    return 0;
  });
}
inline double wide(float v) { return v; }
inline double wide(double v) { return v; }
inline double wide(__half v) { return v.harness_value(); }
inline double wide(__nv_bfloat16 v) { return v.harness_value(); }
template <typename To, typename From>
To narrow(const From& v) {
  if constexpr (std::is_same<To, __half>::value || std::is_same<To, __nv_bfloat16>::value) {
    return To::harness_from(v);
  } else {
    return static_cast<To>(v);
  }
}
inline int64_t wide(int v) { return v; }
inline int64_t wide(signed char v) { return v; }
inline int64_t wide(unsigned char v) { return v; }
}

template <typename Use, int M, int N, int K, typename T, typename Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const std::common_type_t<typename harness_shape::Stored<T>::type>& value) {
  for (auto& element : f.x) { element = value; }
}
template <typename Use, int M, int N, int K, typename T, typename Layout, typename P>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* from, unsigned leading, HARNESS_LINE) {
  static_assert(!std::is_void<Layout>::value, "an accumulator is loaded with its layout");
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = from[harness_shape::place<fragment<Use, M, N, K, T, Layout>>(i, leading, std::is_same<Layout, row_major>::value)];
  }
  __syncwarp(0xffffffffu, harness_line);
}
template <int M, int N, int K, typename T, typename P>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const P* from, unsigned leading, layout_t layout, HARNESS_LINE) {
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = from[harness_shape::place<fragment<accumulator, M, N, K, T>>(i, leading, layout == mem_row_major)];
  }
  __syncwarp(0xffffffffu, harness_line);
}
template <int M, int N, int K, typename T, typename P>
void store_matrix_sync(P* to, const fragment<accumulator, M, N, K, T>& f, unsigned leading, layout_t layout, HARNESS_LINE) {
  for (int i = 0; i < f.num_elements; ++i) {
    to[harness_shape::place<fragment<accumulator, M, N, K, T>>(i, leading, layout == mem_row_major)] = f.x[i];
  }
  __syncwarp(0xffffffffu, harness_line);
}
inline float __float_to_tf32(float value) {
  return ::harness_emulator::cast_bits<float>((::harness_emulator::cast_bits<uint32_t>(value) + 0x1000u) & 0xffffe000u);
}
template <int M, int N, int K, typename TA, typename LA, typename TB, typename LB, typename TC, typename TD>
void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
              const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c, HARNESS_LINE) {
  using A = fragment<matrix_a, M, N, K, TA, LA>;
  using B = fragment<matrix_b, M, N, K, TB, LB>;
  const A* all_a[32];
  const B* all_b[32];
  harness_shape::gather(a, all_a, harness_line);
  harness_shape::gather(b, all_b, harness_line);
  typename harness_shape::Stored<TD>::type result[d.num_elements];
  for (int i = 0; i < d.num_elements; ++i) {
    const int number = ::harness_emulator::current->lane * d.num_elements + i, r = number / N, column = number % N;
    auto sum = harness_shape::wide(c.x[i]);
    for (int k = 0; k < K; ++k) {
      sum += harness_shape::wide(harness_shape::element(all_a, r, k)) * harness_shape::wide(harness_shape::element(all_b, k, column));
    }
    result[i] = harness_shape::narrow<typename harness_shape::Stored<TD>::type>(sum);
  }
  __syncwarp(0xffffffffu, harness_line);  // nobody changes a fragment before all have read it
  for (int i = 0; i < d.num_elements; ++i) { d.x[i] = result[i]; }
}

}
}
