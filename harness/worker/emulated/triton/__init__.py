"""Triton on the emulated device: kernels run in Triton's own interpreter, with checks that it lacks, or are compiled.

Imported only in workers whose program uses Triton.
"""
