#pragma once
#include "core.h"
#include "intrinsics.h"
#include "atomics.h"
#include "warp.h"
