#pragma once
#include <emulator/device_core.h>
namespace thrust {
// A pointer that algorithms know to be on the device: here, any.
template <typename T>
using device_ptr = T*;
template <typename T>
T* device_pointer_cast(T* pointer) { return pointer; }
template <typename T>
T* raw_pointer_cast(T* pointer) { return pointer; }
}
