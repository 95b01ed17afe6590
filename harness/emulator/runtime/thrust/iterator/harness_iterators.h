// Iterators over others: several at once, in an order of indices, backwards, into nothing.
#pragma once
#include <cub/iterators.h>
#include <cstddef>
#include <iterator>
#include <thrust/tuple.h>
#include <utility>
namespace thrust {
// What iterators that only know how to move and to look have in common: `Own` has `harness_move` and `operator*`.
template <typename Own>
class harness_moving {
 public:
  using difference_type = ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  using pointer = void;
  Own& operator++() { return *this += 1; }
  Own& operator--() { return *this += -1; }
  Own operator++(int) { Own old = own(); *this += 1; return old; }
  Own operator--(int) { Own old = own(); *this += -1; return old; }
  Own& operator+=(ptrdiff_t by) { own().harness_move(by); return own(); }
  Own& operator-=(ptrdiff_t by) { return *this += -by; }
  Own operator+(ptrdiff_t by) const { Own moved = own(); moved += by; return moved; }
  Own operator-(ptrdiff_t by) const { return own() + -by; }
  ptrdiff_t operator-(const Own& other) const { return own().harness_place() - other.harness_place(); }
  decltype(auto) operator[](ptrdiff_t by) const { return *(own() + by); }
  bool operator==(const Own& other) const { return own().harness_place() == other.harness_place(); }
  bool operator!=(const Own& other) const { return !(own() == other); }
  bool operator<(const Own& other) const { return own().harness_place() < other.harness_place(); }

 private:
  Own& own() { return static_cast<Own&>(*this); }
  const Own& own() const { return static_cast<const Own&>(*this); }
};
template <typename Tuple>
class zip_iterator;
template <typename... I>
class zip_iterator<tuple<I...>> : public harness_moving<zip_iterator<tuple<I...>>> {
 public:
  using value_type = tuple<typename std::iterator_traits<I>::value_type...>;
  using reference = tuple<typename std::iterator_traits<I>::reference...>;
  zip_iterator() = default;
  zip_iterator(tuple<I...> all) : all_(all) {}
  reference operator*() const {
    return std::apply([](const I&... each) { return reference(*each...); }, all_);
  }
  const tuple<I...>& get_iterator_tuple() const { return all_; }
  void harness_move(ptrdiff_t by) {
    std::apply([by](I&... each) { ((each += by), ...); }, all_);
  }
  const auto& harness_place() const { return std::get<0>(all_); }

 private:
  tuple<I...> all_;
};
template <typename... I>
zip_iterator<tuple<I...>> make_zip_iterator(tuple<I...> all) { return {all}; }
template <typename... I>
zip_iterator<tuple<I...>> make_zip_iterator(I... all) { return {tuple<I...>(all...)}; }

template <typename I, typename Index>
class permutation_iterator : public harness_moving<permutation_iterator<I, Index>> {
 public:
  using value_type = typename std::iterator_traits<I>::value_type;
  using reference = typename std::iterator_traits<I>::reference;
  permutation_iterator(I elements, Index index) : elements_(elements), index_(index) {}
  reference operator*() const { return elements_[*index_]; }
  void harness_move(ptrdiff_t by) { index_ += by; }
  const Index& harness_place() const { return index_; }

 private:
  I elements_;
  Index index_;
};
template <typename I, typename Index>
permutation_iterator<I, Index> make_permutation_iterator(I elements, Index index) { return {elements, index}; }

struct harness_nothing {
  template <typename T>
  const harness_nothing& operator=(const T&) const { return *this; }
};
template <typename = void>
class discard_iterator : public harness_moving<discard_iterator<>> {
 public:
  using value_type = harness_nothing;
  using reference = harness_nothing;
  discard_iterator(ptrdiff_t at = 0) : at_(at) {}
  harness_nothing operator*() const { return {}; }
  void harness_move(ptrdiff_t by) { at_ += by; }
  ptrdiff_t harness_place() const { return at_; }

 private:
  ptrdiff_t at_;
};
inline discard_iterator<> make_discard_iterator(ptrdiff_t at = 0) { return {at}; }
using std::iterator_traits;
using std::reverse_iterator;
template <typename I>
reverse_iterator<I> make_reverse_iterator(I at) { return reverse_iterator<I>(at); }
}
