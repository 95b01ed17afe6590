// The runtime's error of this process: what the last call or launch has set.
#include <atomic>

#include "worker.h"

namespace harness_emulator {

namespace {

std::atomic<int> last_error{0};

struct Known {
  int error;
  const char *name, *text;
};
constexpr Known KNOWN[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "cudaErrorNotSupported", "operation not supported"},
};

const Known* find(int error) {
  for (const Known& known : KNOWN) {
    if (known.error == error) { return &known; }
  }
  return nullptr;
}

}

void set_error(int error) {
  if (error) { last_error = error; }
}
int take_error() { return last_error.exchange(0); }
int peek_error() { return last_error; }
const char* error_name(int error) { return find(error) ? find(error)->name : "unrecognized error code"; }
const char* error_text(int error) { return find(error) ? find(error)->text : "unrecognized error code"; }

}

// The error that a launch has left and nobody has asked for: it would come up at the next call of torch. 0 for none.
extern "C" __attribute__((visibility("default"))) int harness_emulator_take_error() { return harness_emulator::take_error(); }
extern "C" __attribute__((visibility("default"))) const char* harness_emulator_error_text(int error) {
  return harness_emulator::error_text(error);
}
