// What every CUDA source sees: torch's types and CUDA's own names. Precompiled once.
#pragma once
#include <torch/types.h>

// What torch's headers bring along where a GPU's compiler reads them.
#include <math.h>

#include <atomic>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cstring>

#include <library_types.h>

#include "qualifiers.h"
#include "core.h"
#include "vectors.h"
#include "runtime_api.h"
#include "intrinsics.h"
#include "atomics.h"
#include "warp.h"
#include "tensors.h"
