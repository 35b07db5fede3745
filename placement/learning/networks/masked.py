"""Chances of placements whose units chose under masks, see `placement/learning/sampling.py`."""

from typing import NamedTuple

import torch

from placement.core.graph import Ints
from placement.learning.environment import Bools

# The logit of what a mask leaves out. Infinity would make the gradient of the entropy no number.
NEVER = -1e9


class Chances(NamedTuple):
    """The logarithm of the chance of each placement (N,), and the mean entropy of a decision."""

    log_chance: torch.Tensor
    entropy: torch.Tensor


def chances(logits: torch.Tensor, masks: Bools, devices: Ints) -> Chances:
    """Of placements (N, U), by logits (U, D) or (N, U, D) and masks (N, U, D) or (1, U, D)."""
    mask = torch.from_numpy(masks)
    log_p = torch.log_softmax(logits.masked_fill(~mask, NEVER), dim=-1)
    all_p = log_p.expand(len(devices), *log_p.shape[1:])
    chosen = all_p.gather(2, torch.from_numpy(devices)[:, :, None])[:, :, 0]
    return Chances(chosen.sum(dim=1), -(log_p.exp() * log_p).sum(dim=2).mean())
