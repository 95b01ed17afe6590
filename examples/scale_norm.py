"""ScaleNorm: each row divided by its Euclidean norm, times one learned factor."""

import torch
from torch import nn

# Sizes are numbers at module level, so that workloads and cases can replace them.
rows = 8192
columns = 4096


class Model(nn.Module):
    """The reference. A candidate gets the same inputs and weights, and must return outputs of equal shape and dtype."""

    def __init__(self, start):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(start))

    def forward(self, x):
        return x * (self.scale / x.norm(dim=-1, keepdim=True).clamp(min=1e-5))


def get_inputs():
    """Arguments of forward. It is called again, with another secret seed, for each trial and each timed call."""
    return [torch.randn(rows, columns)]


def get_init_inputs():
    """Arguments of the constructor."""
    return [columns**0.5]


# Settings, all optional. They are literals, since the file is not executed to read them.

# Sizes of the workload `small`, for quick tests (--workload small). The workload `full` is scored.
SMALL = {"rows": 37, "columns": 1003}

# What each argument of forward may be; candidates are called with all such inputs: real, integer, index, mask, ...
INPUTS = {"x": "real"}

# Changes of the inputs with which candidates must be correct, too: large, tiny, zeros, ties, integers, padded, ...
DISTRIBUTIONS = ("as_given", "large", "zeros")

# Sizes and dtypes that count for the score of `full`. "given" has the sizes of the file.
CASES = [
    {"name": "given"},
    {"name": "short rows", "sizes": {"rows": 262144, "columns": 128}},
    # {"name": "half precision", "dtype": "bfloat16"},
]

# Sizes drawn in secret for each evaluation: a candidate that is correct for the sizes above only is wrong.
RANGES = {"columns": (1000, 9000)}

# Shown by `harness problems list`.
TAGS = ("normalization",)

# More settings, with their defaults:
# TOLERANCE = {"factor": 8.0}  # accepted error, as a multiple of the reference's own; "atol" and "rtol" accept more
# ALLOW_TF32 = False           # True: matrix products may be computed in TF32
# BACKWARD = False             # True: a call is the forward and the backward pass
# TRAINING = False             # True: modules are in training mode
