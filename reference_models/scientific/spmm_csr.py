"""Product of a sparse matrix in CSR form and a dense matrix; rows have different numbers of entries, some none."""

import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns

    def forward(self, row_starts, column_indices, values, dense):
        shape = (len(row_starts) - 1, self.columns)
        matrix = torch.sparse_csr_tensor(row_starts, column_indices, values, shape, check_invariants=False)
        return matrix @ dense


rows = 65536
columns = 65536
entries = 2097152
features = 128


def get_inputs():
    # Squared: the first rows have most of the entries.
    row_of = (torch.rand(entries) ** 2 * rows).long().sort().values
    row_starts = torch.searchsorted(row_of, torch.arange(rows + 1))
    return [row_starts, torch.randint(0, columns, (entries,)), torch.randn(entries), torch.randn(columns, features)]


def get_init_inputs():
    return [columns]


INPUTS = {
    "row_starts": {"kind": "sorted", "low": 0, "high": "entries"},
    "column_indices": {"kind": "index", "below": "columns"},
    "values": "real",
    "dense": "real",
}
SMALL = {"rows": 1013, "columns": 809, "entries": 8191, "features": 57}
TAGS = ("sparse", "matmul")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "integers", "scale_1e-12")
CASES = [
    {"name": "given"},
    {"name": "vector", "sizes": {"rows": 1048576, "columns": 1048576, "entries": 16777216, "features": 1}},
    {"name": "wide", "sizes": {"rows": 16384, "columns": 16384, "entries": 1048576, "features": 512}},
    {"name": "odd", "sizes": {"rows": 65521, "columns": 50021, "entries": 2000003, "features": 97}},
]
RANGES = {"features": (16, 256)}
