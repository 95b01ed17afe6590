#pragma once
#include <cub/iterators.h>
namespace thrust {
template <typename T>
using counting_iterator = ::cub::CountingInputIterator<T>;
template <typename T>
counting_iterator<T> make_counting_iterator(T first) { return {first}; }
}
