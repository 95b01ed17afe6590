#pragma once
#include <thrust/tuple.h>
#include <utility>
namespace thrust {
// A function of several arguments as one of a tuple of them.
template <typename F>
class zip_function {
 public:
  zip_function(F f) : f_(std::move(f)) {}
  template <typename Tuple>
  decltype(auto) operator()(Tuple&& all) const { return std::apply(f_, std::forward<Tuple>(all)); }

 private:
  F f_;
};
template <typename F>
zip_function<F> make_zip_function(F f) { return {f}; }
}
