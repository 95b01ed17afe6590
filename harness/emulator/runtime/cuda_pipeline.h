// Asynchronous copies to shared memory: done at once, so that waiting for them is nothing.
#pragma once
#include <cuda_pipeline_primitives.h>
