// Half, bfloat16 and what uses them. Not precompiled: torch's flags for CUDA, and a candidate's, say which of their operators
// and conversions there are.
#pragma once
#include "half.h"
#include "bfloat16.h"
#include "ptx.h"
