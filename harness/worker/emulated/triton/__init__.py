"""Runs Triton kernels on the emulated device in Triton's interpreter with more checks, or compiles them.

Only workers whose program uses Triton import it.
"""
