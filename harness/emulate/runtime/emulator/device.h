// What every CUDA source sees: torch's types and CUDA's own names. Precompiled once.
#pragma once
#include <torch/types.h>

#include <atomic>
#include <cassert>
#include <cstring>

#include "qualifiers.h"
#include "core.h"
#include "vectors.h"
#include "runtime_api.h"
#include "intrinsics.h"
#include "atomics.h"
#include "warp.h"
#include "tensors.h"
