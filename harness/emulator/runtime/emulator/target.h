// The GPU that is emulated. Each library holds one definition, made for it.
#pragma once

namespace harness_emulator {
struct Target {
  const char* name;
  int major, minor;
  int warp_size;
  int max_threads_per_block;
  int max_block_x, max_block_y, max_block_z;
  int max_grid_x, max_grid_y, max_grid_z;
  int multiprocessors;
  int max_threads_per_multiprocessor;
  int max_blocks_per_multiprocessor;
  int static_shared_bytes_per_block;
  int max_shared_bytes_per_block;
  int shared_bytes_per_multiprocessor;
  int registers_per_block;
  unsigned long long total_memory_bytes;
  int l2_bytes;
  int clock_khz;
};
}
extern "C" __attribute__((visibility("hidden"))) const harness_emulator::Target harness_emulator_target;
