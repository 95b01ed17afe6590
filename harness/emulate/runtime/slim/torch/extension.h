// torch/extension.h without what only modules and optimisers need. What misses a name here is built against torch's own.
#pragma once
#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
