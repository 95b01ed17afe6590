// The calls that -fsanitize=thread makes, answered by checks.cpp instead of the sanitizer's own runtime.
#include <cstddef>
#include <cstdint>

namespace harness_emulator {
void check_alignment(const void* pointer, unsigned char log, const char* type, const char* file, int line);
void check_access(const void* place, size_t bytes, bool is_write, bool is_atomic, const void* code);
}

#define HARNESS_HOOK extern "C" __attribute__((visibility("hidden"), used))
#define HARNESS_ACCESS(Bytes)                                                                                           \
  HARNESS_HOOK void __tsan_read##Bytes(void* at) {                                                                      \
    harness_emulator::check_access(at, Bytes, false, false, __builtin_return_address(0));                        \
  }                                                                                                                     \
  HARNESS_HOOK void __tsan_write##Bytes(void* at) {                                                                     \
    harness_emulator::check_access(at, Bytes, true, false, __builtin_return_address(0));                         \
  }                                                                                                                     \
  HARNESS_HOOK void __tsan_unaligned_read##Bytes(void* at) {                                                            \
    harness_emulator::check_access(at, Bytes, false, false, __builtin_return_address(0));                            \
  }                                                                                                                     \
  HARNESS_HOOK void __tsan_unaligned_write##Bytes(void* at) {                                                           \
    harness_emulator::check_access(at, Bytes, true, false, __builtin_return_address(0));                             \
  }                                                                                                                     \
  HARNESS_HOOK void __tsan_volatile_read##Bytes(void* at) {                                                             \
    harness_emulator::check_access(at, Bytes, false, false, __builtin_return_address(0));                        \
    harness_emulator::count_access();                                                                                   \
  }                                                                                                                     \
  HARNESS_HOOK void __tsan_volatile_write##Bytes(void* at) {                                                            \
    harness_emulator::check_access(at, Bytes, true, false, __builtin_return_address(0));                         \
  }
HARNESS_ACCESS(1)
HARNESS_ACCESS(2)
HARNESS_ACCESS(4)
HARNESS_ACCESS(8)
HARNESS_ACCESS(16)

HARNESS_HOOK void __tsan_read_range(void* at, size_t bytes) {
  harness_emulator::check_access(at, bytes, false, false, __builtin_return_address(0));
}
HARNESS_HOOK void __tsan_write_range(void* at, size_t bytes) {
  harness_emulator::check_access(at, bytes, true, false, __builtin_return_address(0));
}
HARNESS_HOOK void __tsan_init() {}
HARNESS_HOOK void __tsan_func_entry(void*) {}
HARNESS_HOOK void __tsan_func_exit() {}
HARNESS_HOOK void __tsan_vptr_update(void*, void*) {}
HARNESS_HOOK void __tsan_vptr_read(void*) {}

// Atomics of host code and of the standard library.
#define HARNESS_FETCH(Bits, Word, Name)                                                               \
  HARNESS_HOOK Word __tsan_atomic##Bits##_fetch_##Name(volatile Word* at, Word value, int) {          \
    return __atomic_fetch_##Name(at, value, __ATOMIC_SEQ_CST);                                        \
  }
#define HARNESS_ATOMICS(Bits, Word)                                                                                      \
  HARNESS_HOOK Word __tsan_atomic##Bits##_load(const volatile Word* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); } \
  HARNESS_HOOK void __tsan_atomic##Bits##_store(volatile Word* at, Word value, int) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); } \
  HARNESS_HOOK Word __tsan_atomic##Bits##_exchange(volatile Word* at, Word value, int) {                                 \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                                      \
  HARNESS_HOOK int __tsan_atomic##Bits##_compare_exchange_strong(volatile Word* at, Word* expected, Word value, int, int) { \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
  }                                                                                                                      \
  HARNESS_HOOK int __tsan_atomic##Bits##_compare_exchange_weak(volatile Word* at, Word* expected, Word value, int, int) { \
    return __atomic_compare_exchange_n(at, expected, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
  }                                                                                                                      \
  HARNESS_FETCH(Bits, Word, add)                                                                                         \
  HARNESS_FETCH(Bits, Word, sub)                                                                                         \
  HARNESS_FETCH(Bits, Word, and)                                                                                         \
  HARNESS_FETCH(Bits, Word, or)                                                                                          \
  HARNESS_FETCH(Bits, Word, xor)
HARNESS_ATOMICS(8, uint8_t)
HARNESS_ATOMICS(16, uint16_t)
HARNESS_ATOMICS(32, uint32_t)
HARNESS_ATOMICS(64, uint64_t)
HARNESS_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HARNESS_HOOK void __tsan_atomic_signal_fence(int) {}

// -fsanitize=alignment: a pointer that is no multiple of what its type needs. The place is the compiler's own words.
namespace {
struct SourcePlace {
  const char* file;
  uint32_t line, column;
};
struct TypeName {
  uint16_t kind, info;
  char name[1];
};
struct MismatchData {
  SourcePlace place;
  const TypeName* type;
  unsigned char log_alignment, check_kind;
};
}
HARNESS_HOOK void __ubsan_handle_type_mismatch_v1(MismatchData* data, void* pointer) {
  harness_emulator::check_alignment(pointer, data->log_alignment, data->type->name, data->place.file, int(data->place.line));
}
