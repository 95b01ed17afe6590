// In every CUDA source already; for host sources that ask for it.
#pragma once
#include <emulator/host_api.h>
