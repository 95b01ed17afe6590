#pragma once
#include <cub/iterators.h>
namespace thrust {
template <typename T>
using constant_iterator = ::cub::ConstantInputIterator<T>;
template <typename T>
constant_iterator<T> make_constant_iterator(T value) { return {value}; }
}
