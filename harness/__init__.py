"""`harness` measures how well language models write fast kernels. Importing it does nothing."""

__version__ = "0.1.0"
