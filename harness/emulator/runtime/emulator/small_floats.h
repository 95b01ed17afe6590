// half and bfloat16. No guard: included once for each, with HARNESS_S and HARNESS_S2 the types, HARNESS_S_TORCH torch's, and
// HARNESS_NAME(prefix, suffix) the type's name between them, as in __half2float.

#define HARNESS_RAW_(Type) Type##_raw
#define HARNESS_RAW(Type) HARNESS_RAW_(Type)
struct HARNESS_RAW(HARNESS_S) {
  unsigned short x;
};
struct HARNESS_RAW(HARNESS_S2) {
  unsigned short x, y;
};
struct alignas(2) HARNESS_S {
 private:
  unsigned short bits_;
  using Raw = HARNESS_RAW(HARNESS_S);
  using Torch = HARNESS_S_TORCH;

 public:
  HARNESS_S() = default;
  constexpr HARNESS_S(const Raw& raw) : bits_(raw.x) {}
  template <typename T, typename = std::enable_if_t<std::is_same<T, Torch>::value>>
  HARNESS_S(const T& value) : bits_(value.x) {}
#ifdef HARNESS_S_CONVERSIONS
#define HARNESS_FROM(T) \
  HARNESS_S(T value) : HARNESS_S(harness_from(value)) {}
  HARNESS_FROM(float)
  HARNESS_FROM(double)
  HARNESS_FROM(int)
  HARNESS_FROM(unsigned)
  HARNESS_FROM(long)
  HARNESS_FROM(unsigned long)
  HARNESS_FROM(long long)
  HARNESS_FROM(unsigned long long)
  HARNESS_FROM(short)
  HARNESS_FROM(unsigned short)
#undef HARNESS_FROM
  operator float() const { return harness_value(); }
  explicit operator double() const { return harness_value(); }
  explicit operator int() const { return harness_emulator::convert<int>(harness_value()); }
  explicit operator unsigned() const { return harness_emulator::convert<unsigned>(harness_value()); }
  explicit operator unsigned long() const { return harness_emulator::convert<unsigned long>(harness_value()); }
  explicit operator long() const { return harness_emulator::convert<long>(harness_value()); }
  explicit operator long long() const { return harness_emulator::convert<long long>(harness_value()); }
  explicit operator short() const { return short(harness_emulator::convert<int>(harness_value())); }
  explicit operator unsigned short() const { return static_cast<unsigned short>(harness_emulator::convert<unsigned>(harness_value())); }
  explicit operator signed char() const { return static_cast<signed char>(harness_emulator::convert<int>(harness_value())); }
  explicit operator unsigned char() const { return static_cast<unsigned char>(harness_emulator::convert<unsigned>(harness_value())); }
  explicit operator bool() const { return (bits_ & 0x7fffu) != 0; }
#endif
  operator Raw() const { return {bits_}; }
  operator Torch() const { return Torch(bits_, Torch::from_bits()); }
  float harness_value() const { return harness_emulator::decode(bits_, static_cast<Torch*>(nullptr)); }
  template <typename T>
  static HARNESS_S harness_from(T value) {
    using Wide = std::conditional_t<std::is_same<T, float>::value, float, double>;
    return harness_make(harness_emulator::encode(Wide(value), static_cast<Torch*>(nullptr)));
  }
  unsigned short harness_bits() const { return bits_; }
  static HARNESS_S harness_make(unsigned short bits) { return HARNESS_S(Raw{bits}); }
};
struct alignas(4) HARNESS_S2 {
  HARNESS_S x, y;
  HARNESS_S2() = default;
  HARNESS_S2(const HARNESS_S& a, const HARNESS_S& b) : x(a), y(b) {}
  HARNESS_S2(const HARNESS_RAW(HARNESS_S2)& raw) : x(HARNESS_RAW(HARNESS_S){raw.x}), y(HARNESS_RAW(HARNESS_S){raw.y}) {}
};
namespace harness_emulator __attribute__((visibility("hidden"))) {
HARNESS_LOADABLE(HARNESS_S)
HARNESS_LOADABLE(HARNESS_S2)
}
inline HARNESS_S_TORCH __ldg(const HARNESS_S_TORCH* address) { return *address; }  // torch's own is for GPUs

#define HARNESS_ARITHMETIC(Name, Op)                                                                          \
  inline HARNESS_S harness_##Name(const HARNESS_S& a, const HARNESS_S& b) {                                  \
    return HARNESS_S::harness_from(a.harness_value() Op b.harness_value());                                  \
  }                                                                                                          \
  inline HARNESS_S2 harness_##Name(const HARNESS_S2& a, const HARNESS_S2& b) {                               \
    return {harness_##Name(a.x, b.x), harness_##Name(a.y, b.y)};                                             \
  }
HARNESS_ARITHMETIC(add, +)
HARNESS_ARITHMETIC(sub, -)
HARNESS_ARITHMETIC(mul, *)
HARNESS_ARITHMETIC(div, /)
#undef HARNESS_ARITHMETIC
inline HARNESS_S harness_negative(const HARNESS_S& a) {
  return HARNESS_S::harness_make(static_cast<unsigned short>(a.harness_bits() ^ 0x8000u));
}

// What torch's flags take away from half, unless a candidate undefines them.
#ifdef HARNESS_S_OPERATORS
#define HARNESS_OP(Op, Name)                                                                                  \
  inline HARNESS_S operator Op(const HARNESS_S& a, const HARNESS_S& b) { return harness_##Name(a, b); }       \
  inline HARNESS_S& operator Op##=(HARNESS_S& a, const HARNESS_S& b) { return a = harness_##Name(a, b); }
HARNESS_OP(+, add)
HARNESS_OP(-, sub)
HARNESS_OP(*, mul)
HARNESS_OP(/, div)
#undef HARNESS_OP
inline HARNESS_S operator-(const HARNESS_S& a) { return harness_negative(a); }
inline HARNESS_S operator+(const HARNESS_S& a) { return a; }
inline HARNESS_S& operator++(HARNESS_S& a) { return a = harness_add(a, HARNESS_S::harness_from(1.0f)); }
inline HARNESS_S& operator--(HARNESS_S& a) { return a = harness_sub(a, HARNESS_S::harness_from(1.0f)); }
#define HARNESS_OP(Op) \
  inline bool operator Op(const HARNESS_S& a, const HARNESS_S& b) { return a.harness_value() Op b.harness_value(); }
HARNESS_OP(==)
HARNESS_OP(!=)
HARNESS_OP(<)
HARNESS_OP(>)
HARNESS_OP(<=)
HARNESS_OP(>=)
#undef HARNESS_OP
#endif
#ifdef HARNESS_S2_OPERATORS
#define HARNESS_OP(Op, Name)                                                                                  \
  inline HARNESS_S2 operator Op(const HARNESS_S2& a, const HARNESS_S2& b) { return harness_##Name(a, b); }    \
  inline HARNESS_S2& operator Op##=(HARNESS_S2& a, const HARNESS_S2& b) { return a = harness_##Name(a, b); }
HARNESS_OP(+, add)
HARNESS_OP(-, sub)
HARNESS_OP(*, mul)
HARNESS_OP(/, div)
#undef HARNESS_OP
inline HARNESS_S2 operator-(const HARNESS_S2& a) { return {harness_negative(a.x), harness_negative(a.y)}; }
#endif

inline bool __hisnan(HARNESS_S a) { return a.harness_value() != a.harness_value(); }
#define HARNESS_COMPARE(Op, Name)                                                                                  \
  inline bool __h##Name##u(HARNESS_S a, HARNESS_S b) { return __hisnan(a) || __hisnan(b) || a.harness_value() Op b.harness_value(); } \
  inline unsigned __h##Name##2_mask(HARNESS_S2 a, HARNESS_S2 b) {                                                                   \
    return (a.x.harness_value() Op b.x.harness_value() ? 0xffffu : 0u) | (a.y.harness_value() Op b.y.harness_value() ? 0xffff0000u : 0u); \
  }                                                                                                                                 \
  inline bool __h##Name(HARNESS_S a, HARNESS_S b) { return a.harness_value() Op b.harness_value(); }                                 \
  inline bool __hb##Name##2(HARNESS_S2 a, HARNESS_S2 b) { return (a.x.harness_value() Op b.x.harness_value()) && (a.y.harness_value() Op b.y.harness_value()); }                   \
  inline HARNESS_S2 __h##Name##2(HARNESS_S2 a, HARNESS_S2 b) {                                                     \
    return {HARNESS_S::harness_from(a.x.harness_value() Op b.x.harness_value() ? 1.0f : 0.0f), \
            HARNESS_S::harness_from(a.y.harness_value() Op b.y.harness_value() ? 1.0f : 0.0f)};                             \
  }
HARNESS_COMPARE(==, eq)
HARNESS_COMPARE(!=, ne)
HARNESS_COMPARE(<, lt)
HARNESS_COMPARE(>, gt)
HARNESS_COMPARE(<=, le)
HARNESS_COMPARE(>=, ge)
#undef HARNESS_COMPARE

inline HARNESS_S __hadd(HARNESS_S a, HARNESS_S b) { return harness_add(a, b); }
inline HARNESS_S __hsub(HARNESS_S a, HARNESS_S b) { return harness_sub(a, b); }
inline HARNESS_S __hmul(HARNESS_S a, HARNESS_S b) { return harness_mul(a, b); }
inline HARNESS_S __hadd_rn(HARNESS_S a, HARNESS_S b) { return harness_add(a, b); }
inline HARNESS_S __hsub_rn(HARNESS_S a, HARNESS_S b) { return harness_sub(a, b); }
inline HARNESS_S __hmul_rn(HARNESS_S a, HARNESS_S b) { return harness_mul(a, b); }
inline HARNESS_S __hdiv(HARNESS_S a, HARNESS_S b) { return harness_div(a, b); }
inline HARNESS_S __hneg(HARNESS_S a) { return harness_negative(a); }
inline HARNESS_S __habs(HARNESS_S a) { return HARNESS_S::harness_make(a.harness_bits() & 0x7fffu); }
inline HARNESS_S __hfma(HARNESS_S a, HARNESS_S b, HARNESS_S c) { return HARNESS_S::harness_from(double(a.harness_value()) * double(b.harness_value()) + double(c.harness_value())); }
inline HARNESS_S __hfma_relu(HARNESS_S a, HARNESS_S b, HARNESS_S c) {
  const HARNESS_S r = __hfma(a, b, c);
  return r.harness_value() > 0.0f ? r : HARNESS_S::harness_from(0.0f);
}
inline HARNESS_S __hmax(HARNESS_S a, HARNESS_S b) { return HARNESS_S::harness_from(::fmaxf(a.harness_value(), b.harness_value())); }
inline HARNESS_S __hmin(HARNESS_S a, HARNESS_S b) { return HARNESS_S::harness_from(::fminf(a.harness_value(), b.harness_value())); }
inline HARNESS_S __hmax_nan(HARNESS_S a, HARNESS_S b) { return a.harness_value() != a.harness_value() ? a : b.harness_value() != b.harness_value() ? b : __hmax(a, b); }
inline HARNESS_S __hmin_nan(HARNESS_S a, HARNESS_S b) { return a.harness_value() != a.harness_value() ? a : b.harness_value() != b.harness_value() ? b : __hmin(a, b); }
inline HARNESS_S __hadd_sat(HARNESS_S a, HARNESS_S b) { return HARNESS_S::harness_from(saturate(harness_add(a, b).harness_value())); }
inline HARNESS_S __hmul_sat(HARNESS_S a, HARNESS_S b) { return HARNESS_S::harness_from(saturate(harness_mul(a, b).harness_value())); }
inline HARNESS_S __hsub_sat(HARNESS_S a, HARNESS_S b) { return HARNESS_S::harness_from(saturate(harness_sub(a, b).harness_value())); }
inline HARNESS_S __hfma_sat(HARNESS_S a, HARNESS_S b, HARNESS_S c) { return HARNESS_S::harness_from(saturate(__hfma(a, b, c).harness_value())); }
inline int __hisinf(HARNESS_S a) { return std::isinf(a.harness_value()) ? (a.harness_value() > 0 ? 1 : -1) : 0; }

inline HARNESS_S2 __hadd2(HARNESS_S2 a, HARNESS_S2 b) { return harness_add(a, b); }
inline HARNESS_S2 __hsub2(HARNESS_S2 a, HARNESS_S2 b) { return harness_sub(a, b); }
inline HARNESS_S2 __hmul2(HARNESS_S2 a, HARNESS_S2 b) { return harness_mul(a, b); }
inline HARNESS_S2 __hadd2_rn(HARNESS_S2 a, HARNESS_S2 b) { return harness_add(a, b); }
inline HARNESS_S2 __hmul2_rn(HARNESS_S2 a, HARNESS_S2 b) { return harness_mul(a, b); }
inline HARNESS_S2 __h2div(HARNESS_S2 a, HARNESS_S2 b) { return harness_div(a, b); }
inline HARNESS_S2 __hneg2(HARNESS_S2 a) { return {harness_negative(a.x), harness_negative(a.y)}; }
inline HARNESS_S2 __habs2(HARNESS_S2 a) { return {__habs(a.x), __habs(a.y)}; }
inline HARNESS_S2 __hfma2(HARNESS_S2 a, HARNESS_S2 b, HARNESS_S2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline HARNESS_S2 __hfma2_relu(HARNESS_S2 a, HARNESS_S2 b, HARNESS_S2 c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; }
inline HARNESS_S2 __hfma2_sat(HARNESS_S2 a, HARNESS_S2 b, HARNESS_S2 c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; }
inline HARNESS_S2 __hadd2_sat(HARNESS_S2 a, HARNESS_S2 b) { return {__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)}; }
inline HARNESS_S2 __hmul2_sat(HARNESS_S2 a, HARNESS_S2 b) { return {__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)}; }
inline HARNESS_S2 __hmax2_nan(HARNESS_S2 a, HARNESS_S2 b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; }
inline HARNESS_S2 __hmin2_nan(HARNESS_S2 a, HARNESS_S2 b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; }
inline HARNESS_S2 __hisnan2(HARNESS_S2 a) { return {HARNESS_S::harness_from(__hisnan(a.x) ? 1.0f : 0.0f), HARNESS_S::harness_from(__hisnan(a.y) ? 1.0f : 0.0f)}; }
// (a.x + i a.y) (b.x + i b.y) + c
inline HARNESS_S2 __hcmadd(HARNESS_S2 a, HARNESS_S2 b, HARNESS_S2 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}
inline HARNESS_S2 __hmax2(HARNESS_S2 a, HARNESS_S2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline HARNESS_S2 __hmin2(HARNESS_S2 a, HARNESS_S2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
inline HARNESS_S HARNESS_NAME(__low2, )(HARNESS_S2 a) { return a.x; }
inline HARNESS_S HARNESS_NAME(__high2, )(HARNESS_S2 a) { return a.y; }
inline HARNESS_S2 HARNESS_NAME(__low2, 2)(HARNESS_S2 a) { return {a.x, a.x}; }
inline HARNESS_S2 HARNESS_NAME(__high2, 2)(HARNESS_S2 a) { return {a.y, a.y}; }
inline HARNESS_S2 __lowhigh2highlow(HARNESS_S2 a) { return {a.y, a.x}; }
inline HARNESS_S2 HARNESS_NAME(__lows2, 2)(HARNESS_S2 a, HARNESS_S2 b) { return {a.x, b.x}; }
inline HARNESS_S2 HARNESS_NAME(__highs2, 2)(HARNESS_S2 a, HARNESS_S2 b) { return {a.y, b.y}; }

#define HARNESS_MATH(Name, Function)                                                      \
  inline HARNESS_S h##Name(HARNESS_S a) { return HARNESS_S::harness_from(Function(a.harness_value())); }         \
  inline HARNESS_S2 h2##Name(HARNESS_S2 a) { return {h##Name(a.x), h##Name(a.y)}; }
HARNESS_MATH(exp, ::expf)
HARNESS_MATH(exp2, ::exp2f)
HARNESS_MATH(exp10, ::exp10f)
HARNESS_MATH(log, ::logf)
HARNESS_MATH(log2, ::log2f)
HARNESS_MATH(log10, ::log10f)
HARNESS_MATH(sqrt, ::sqrtf)
HARNESS_MATH(rsqrt, ::rsqrtf)
HARNESS_MATH(rcp, 1.0f /)
HARNESS_MATH(sin, ::sinf)
HARNESS_MATH(cos, ::cosf)
HARNESS_MATH(tanh, ::tanhf)
HARNESS_MATH(tanh_approx, ::tanhf)
HARNESS_MATH(floor, ::floorf)
HARNESS_MATH(ceil, ::ceilf)
HARNESS_MATH(trunc, ::truncf)
HARNESS_MATH(rint, ::rintf)
#undef HARNESS_MATH

inline HARNESS_S atomicAdd(HARNESS_S* address, HARNESS_S value) {
  return harness_emulator::change_atomically(address, [value](HARNESS_S old) { return harness_add(old, value); });
}
inline HARNESS_S2 atomicAdd(HARNESS_S2* address, HARNESS_S2 value) {
  return harness_emulator::change_atomically(address, [value](HARNESS_S2 old) { return harness_add(old, value); });
}
#define HARNESS_SMALL_SHUFFLE(Name, Run, Argument)                                                               \
  inline HARNESS_S Name(unsigned mask, HARNESS_S value, Argument argument, int width = 32, HARNESS_LINE) {       \
    return harness_emulator::Run(mask, value, argument, width, harness_line);                                    \
  }                                                                                                              \
  inline HARNESS_S2 Name(unsigned mask, HARNESS_S2 value, Argument argument, int width = 32, HARNESS_LINE) {     \
    return harness_emulator::Run(mask, value, argument, width, harness_line);                                    \
  }
HARNESS_SMALL_SHUFFLE(__shfl_sync, shuffle, int)
HARNESS_SMALL_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
HARNESS_SMALL_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
HARNESS_SMALL_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)
#undef HARNESS_SMALL_SHUFFLE

#define HARNESS_TO_SMALL(Name, Type) \
  inline HARNESS_S Name(Type x) { return HARNESS_S::harness_from(x); }
HARNESS_TO_SMALL(HARNESS_NAME(__float2, ), float)
HARNESS_TO_SMALL(HARNESS_NAME(__float2, _rn), float)
HARNESS_TO_SMALL(HARNESS_NAME(__double2, ), double)
HARNESS_TO_SMALL(HARNESS_NAME(__short2, _rn), short)
HARNESS_TO_SMALL(HARNESS_NAME(__ushort2, _rn), unsigned short)
HARNESS_TO_SMALL(HARNESS_NAME(__int2, _rn), int)
HARNESS_TO_SMALL(HARNESS_NAME(__uint2, _rn), unsigned)
#undef HARNESS_TO_SMALL
inline HARNESS_S HARNESS_NAME(__ll2, _rn)(long long x) { return HARNESS_S::harness_from(double(x)); }
inline HARNESS_S HARNESS_NAME(__ull2, _rn)(unsigned long long x) { return HARNESS_S::harness_from(double(x)); }
#define HARNESS_FROM_SMALL(Type, Name, Convert) \
  inline Type HARNESS_NAME(__, Name)(HARNESS_S x) { return static_cast<Type>(Convert(x.harness_value())); }
HARNESS_FROM_SMALL(float, 2float, )
HARNESS_FROM_SMALL(int, 2int_rn, __float2int_rn)
HARNESS_FROM_SMALL(int, 2int_rz, __float2int_rz)
HARNESS_FROM_SMALL(int, 2int_rd, __float2int_rd)
HARNESS_FROM_SMALL(int, 2int_ru, __float2int_ru)
HARNESS_FROM_SMALL(unsigned, 2uint_rn, __float2uint_rn)
HARNESS_FROM_SMALL(unsigned, 2uint_rz, __float2uint_rz)
HARNESS_FROM_SMALL(unsigned, 2uint_rd, __float2uint_rd)
HARNESS_FROM_SMALL(unsigned, 2uint_ru, __float2uint_ru)
HARNESS_FROM_SMALL(short, 2short_rn, __float2int_rn)
HARNESS_FROM_SMALL(short, 2short_rz, __float2int_rz)
HARNESS_FROM_SMALL(unsigned short, 2ushort_rn, __float2uint_rn)
HARNESS_FROM_SMALL(unsigned short, 2ushort_rz, __float2uint_rz)
HARNESS_FROM_SMALL(signed char, 2char_rz, __float2int_rz)
HARNESS_FROM_SMALL(unsigned char, 2uchar_rz, __float2uint_rz)
HARNESS_FROM_SMALL(long long, 2ll_rn, __float2ll_rn)
HARNESS_FROM_SMALL(long long, 2ll_rz, __float2ll_rz)
#undef HARNESS_FROM_SMALL
inline unsigned short HARNESS_NAME(__, _as_ushort)(HARNESS_S x) { return x.harness_bits(); }
inline short HARNESS_NAME(__, _as_short)(HARNESS_S x) { return short(x.harness_bits()); }
inline HARNESS_S HARNESS_NAME(__ushort_as_, )(unsigned short x) { return HARNESS_S::harness_make(x); }
inline HARNESS_S HARNESS_NAME(__short_as_, )(short x) { return HARNESS_S::harness_make(static_cast<unsigned short>(x)); }
inline HARNESS_S2 HARNESS_NAME(__float2, 2_rn)(float x) { return {HARNESS_S::harness_from(x), HARNESS_S::harness_from(x)}; }
inline HARNESS_S2 HARNESS_NAME(__floats2, 2_rn)(float x, float y) { return {HARNESS_S::harness_from(x), HARNESS_S::harness_from(y)}; }
inline HARNESS_S2 HARNESS_NAME(__float22, 2_rn)(float2 v) { return {HARNESS_S::harness_from(v.x), HARNESS_S::harness_from(v.y)}; }
inline float2 HARNESS_NAME(__, 22float2)(HARNESS_S2 v) { return {v.x.harness_value(), v.y.harness_value()}; }
inline HARNESS_S2 HARNESS_NAME(__halves2, 2)(HARNESS_S x, HARNESS_S y) { return {x, y}; }
inline HARNESS_S2 HARNESS_NAME(make_, 2)(HARNESS_S x, HARNESS_S y) { return {x, y}; }
inline float __low2float(HARNESS_S2 v) { return v.x.harness_value(); }
inline float __high2float(HARNESS_S2 v) { return v.y.harness_value(); }
#undef HARNESS_RAW_
#undef HARNESS_RAW
#undef HARNESS_S
#undef HARNESS_S2
#undef HARNESS_S_TORCH
#undef HARNESS_NAME
#undef HARNESS_S_CONVERSIONS
#undef HARNESS_S_OPERATORS
#undef HARNESS_S2_OPERATORS
