// In every CUDA source already; for host sources that ask for it.
#pragma once
#include <atomic>

#include <emulator/host_api.h>
#include <emulator/intrinsics.h>
#include <emulator/atomics.h>
#include <emulator/warp.h>
#include <emulator/small.h>
