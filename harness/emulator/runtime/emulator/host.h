// What host sources see most of: torch's types and its binding of pybind11. Precompiled once.
#pragma once
#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
