"""Reads hardware counters of a candidate's kernels by ncu (Nsight Compute)."""
