"""Inherits, with dataclasses, properties, a metaclass and slots on the way.

mechanism: Plain object orientation that looks like tricks with classes.
problem: add
expected: correct
device: cpu
timed: no
"""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Settings:
    scale: float = 1.0
    names: list[str] = field(default_factory=list)


class Operation(nn.Module, metaclass=ABCMeta):
    def __init__(self, settings=None):
        super().__init__()
        self.settings = settings or Settings()

    @property
    def scale(self):
        return self.settings.scale

    @abstractmethod
    def apply_to(self, a, b): ...

    def forward(self, a, b):
        return self.apply_to(a, b)


class ModelNew(Operation):
    def apply_to(self, a, b):
        return torch.add(a, b, alpha=self.scale)
