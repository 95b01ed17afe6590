// torch/extension.h without what only modules and optimisers need, and without Python where the source does not name it.
// What misses a name here is built against torch's own.
#pragma once
#include <torch/types.h>
#ifdef HARNESS_NEEDS_PYTHON
#include <torch/csrc/Exceptions.h>
#endif
