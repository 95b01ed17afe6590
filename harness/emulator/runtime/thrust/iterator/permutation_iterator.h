#pragma once
#include <thrust/iterator/harness_iterators.h>
