// What host sources see most of: torch's types, its binding of pybind11, and what load_inline wraps functions in.
// Precompiled once.
#pragma once
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
