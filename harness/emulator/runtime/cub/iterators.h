// Iterators that make up their values.
#pragma once
#include <cub/operators.h>
#include <iterator>
namespace cub {
namespace harness_iterators {
// What an iterator over made-up values has in common: `Own` says what stands at a place.
template <typename Own, typename T>
class Indexed {
 public:
  using value_type = T;
  using reference = T;
  using pointer = const T*;
  using difference_type = ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  explicit Indexed(ptrdiff_t at) : at_(at) {}
  T operator*() const { return own().at(at_); }
  T operator[](ptrdiff_t i) const { return own().at(at_ + i); }
  Own& operator++() { ++at_; return static_cast<Own&>(*this); }
  Own operator++(int) { Own old = own(); ++at_; return old; }
  Own& operator+=(ptrdiff_t by) { at_ += by; return static_cast<Own&>(*this); }
  Own operator+(ptrdiff_t by) const { Own moved = own(); moved += by; return moved; }
  Own operator-(ptrdiff_t by) const { return own() + -by; }
  ptrdiff_t operator-(const Own& other) const { return at_ - other.at_; }
  bool operator==(const Own& other) const { return at_ == other.at_; }
  bool operator!=(const Own& other) const { return at_ != other.at_; }
  bool operator<(const Own& other) const { return at_ < other.at_; }

 private:
  const Own& own() const { return static_cast<const Own&>(*this); }
  ptrdiff_t at_;
};
}
template <typename T, typename = ptrdiff_t>
class CountingInputIterator : public harness_iterators::Indexed<CountingInputIterator<T>, T> {
 public:
  CountingInputIterator(T first) : harness_iterators::Indexed<CountingInputIterator<T>, T>(0), first_(first) {}
  T at(ptrdiff_t i) const { return T(first_ + T(i)); }

 private:
  T first_;
};
template <typename T, typename = ptrdiff_t>
class ConstantInputIterator : public harness_iterators::Indexed<ConstantInputIterator<T>, T> {
 public:
  ConstantInputIterator(T value) : harness_iterators::Indexed<ConstantInputIterator<T>, T>(0), value_(value) {}
  T at(ptrdiff_t) const { return value_; }

 private:
  T value_;
};
template <typename T, typename F, typename From, typename = ptrdiff_t>
class TransformInputIterator : public harness_iterators::Indexed<TransformInputIterator<T, F, From>, T> {
 public:
  TransformInputIterator(From from, F change)
      : harness_iterators::Indexed<TransformInputIterator<T, F, From>, T>(0), from_(from), change_(change) {}
  T at(ptrdiff_t i) const { return T(change_(from_[i])); }

 private:
  From from_;
  F change_;
};
template <typename From, typename Offset = ptrdiff_t, typename T = typename std::iterator_traits<From>::value_type>
class ArgIndexInputIterator : public harness_iterators::Indexed<ArgIndexInputIterator<From, Offset, T>, KeyValuePair<Offset, T>> {
 public:
  ArgIndexInputIterator(From from)
      : harness_iterators::Indexed<ArgIndexInputIterator<From, Offset, T>, KeyValuePair<Offset, T>>(0), from_(from) {}
  KeyValuePair<Offset, T> at(ptrdiff_t i) const { return {Offset(i), from_[i]}; }

 private:
  From from_;
};
}
