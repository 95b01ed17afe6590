// What host code may see of CUDA: qualifiers, vector types and the runtime API.
#pragma once
#include "qualifiers.h"
#include "runtime_api.h"
