"""Hardware counters of a candidate's kernels, read by ncu (Nsight Compute)."""
