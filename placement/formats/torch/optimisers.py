"""Optimisers as one op per parameter: functions of a parameter, its gradient and its own state.

`out` has tensors that the results may be written to: getting memory for large ones anew in every
step costs as much as the update. Same arithmetic as `torch.optim.SGD` and `torch.optim.Adam`
without weight decay.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor


def update_sgd(
    param: Tensor, grad: Tensor, lr: float, *, out: tuple[Tensor | None, ...] = (None,)
) -> tuple[Tensor]:
    return (torch.add(param, grad, alpha=-lr, out=out[0]),)


def update_momentum(
    param: Tensor,
    grad: Tensor,
    velocity: Tensor,
    lr: float,
    momentum: float,
    *,
    out: tuple[Tensor | None, ...] = (None, None),
) -> tuple[Tensor, Tensor]:
    velocity = torch.mul(velocity, momentum, out=out[1]).add_(grad)
    return torch.add(param, velocity, alpha=-lr, out=out[0]), velocity


def update_adam(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    step: Tensor,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    *,
    out: tuple[Tensor | None, ...] = (None, None, None, None),
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Kingma and Ba, "Adam: A method for stochastic optimization", ICLR 2015.

    1 - beta^step by `expm1`, since the number of steps is kept in single precision: there the plain
    form loses five of its seven digits in the first steps, and PyTorch has these in double.
    """
    step = torch.add(step, 1, out=out[3])
    mean = torch.lerp(mean, grad, 1.0 - betas[0], out=out[1])
    square = torch.mul(square, betas[1], out=out[2]).addcmul_(grad, grad, value=1.0 - betas[1])
    size = lr / -torch.expm1(step * math.log(betas[0]))
    unbiased = -torch.expm1(step * math.log(betas[1]))
    below = square.sqrt().div_(unbiased.sqrt()).add_(eps)
    change = torch.div(mean, below, out=below).mul_(size)
    return torch.sub(param, change, out=out[0]), mean, square, step


@dataclass(frozen=True)
class Optimiser:
    """A function (param, grad, *state, *settings) -> (param, *state); `state` names its state."""

    function: Any
    state: tuple[str, ...]
    settings: tuple[Any, ...]
    # State that is one number, whatever the parameter's shape.
    numbers: ClassVar[tuple[str, ...]] = ("step",)

    def state_of(self, param: Tensor) -> dict[str, Tensor]:
        """What the optimiser keeps for a parameter, as it is before the first step."""
        return {
            name: torch.zeros(()) if name in self.numbers else torch.zeros_like(param)
            for name in self.state
        }


def optimiser(name: str, lr: float | None = None) -> Optimiser:
    """SGD, SGD with momentum 0.9, or Adam, with their usual settings."""
    if lr is not None and not 0 < lr < float("inf"):
        raise ValueError(f"The learning rate is {lr}; use more than zero.")
    known = {
        "sgd": Optimiser(update_sgd, (), (lr or 0.01,)),
        "momentum": Optimiser(update_momentum, ("velocity",), (lr or 0.01, 0.9)),
        "adam": Optimiser(
            update_adam, ("mean", "square", "step"), (lr or 1e-3, (0.9, 0.999), 1e-8)
        ),
    }
    if name not in known:
        raise ValueError(f"There is no optimiser {name!r}; use one of {', '.join(known)}.")
    return known[name]
