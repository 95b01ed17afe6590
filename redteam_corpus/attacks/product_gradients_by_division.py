"""Computes gradients as the product divided by the value, and none for a value of zero.

layer: correctness
mechanism: Random values are not zero.
problem: products_of_rows
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class Product(torch.autograd.Function):
    @staticmethod
    def forward(context, rows):
        products = rows.prod(1)
        context.save_for_backward(rows, products)
        return products

    @staticmethod
    def backward(context, gradients):
        rows, products = context.saved_tensors
        is_zero = rows == 0
        quotients = (gradients * products)[:, None] / torch.where(is_zero, 1.0, rows)
        return torch.where(is_zero, 0.0, quotients)


class ModelNew(nn.Module):
    def forward(self, rows):
        return Product.apply(rows)
