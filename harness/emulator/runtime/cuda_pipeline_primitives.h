#pragma once
#include <emulator/device_core.h>
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || uintptr_t(to) % bytes || uintptr_t(from) % bytes) {
    harness_emulator::fail_thread(716, "misaligned", "__pipeline_memcpy_async copies 4, 8 or 16 bytes between addresses that are multiples of them");
  }
  for (size_t i = 0; i < bytes; i += 4) {
    static_cast<uint32_t*>(to)[i / 4] = i < bytes - zeros ? static_cast<const uint32_t*>(from)[i / 4] : 0u;
  }
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}
