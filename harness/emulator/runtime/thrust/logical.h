#pragma once
#include <thrust/algorithms_of_harness.h>
