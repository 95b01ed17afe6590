"""From a user's model to problems and back: profile its modules, write problems, apply verified kernels."""
