// The standard library under the name that it has on the device.
#pragma once
#include <type_traits>
namespace cuda {
namespace std {
using namespace ::std;
}
}
