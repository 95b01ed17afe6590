#pragma once
#include <cub/iterators.h>
namespace thrust {
template <typename From, typename F>
auto make_transform_iterator(From from, F change) {
  using T = std::decay_t<decltype(change(from[0]))>;
  return ::cub::TransformInputIterator<T, F, From>(from, change);
}
}
