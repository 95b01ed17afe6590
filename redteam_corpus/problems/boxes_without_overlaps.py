"""Scores of boxes; zero for those that overlap a better one that is kept."""

import torch
from torch import nn

boxes_of, threshold = 160, 0.4


def overlap(boxes):
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = (high - low).clamp(min=0).prod(dim=-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=-1)
    return both / (area[:, None] + area - both)


class Model(nn.Module):
    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        overlaps = overlap(boxes[order]) > threshold
        kept = torch.ones_like(order, dtype=torch.bool)
        for at in range(len(order)):
            kept[at + 1 :] &= ~(overlaps[at, at + 1 :] & kept[at])
        return torch.zeros_like(scores).index_copy(0, order, scores[order] * kept)


def get_inputs():
    places, sizes = 100 * torch.rand(boxes_of, 2), 8 + 16 * torch.rand(boxes_of, 2)
    scores = (torch.randperm(boxes_of) + 0.5 * torch.rand(boxes_of)).sort(descending=True).values / boxes_of
    return [torch.cat([places - sizes, places + sizes], dim=1), scores]


def get_init_inputs():
    return []


INPUTS = {"scores": {"kind": "real", "distinct": True}}
