"""Evolution strategies: weights moved by how well random changes of them do.

Salimans, Ho, Chen, Sidor and Sutskever, "Evolution strategies as a scalable alternative to
reinforcement learning", 2017: pairs of opposite changes, ranks instead of values, Adam. They need
no gradient, so that a policy may be any compiled function, and a whole placement is one decision.
"""

import numpy as np

from placement.core.costs import Floats

# Of Adam: how long means are remembered.
_DECAY, _SQUARE_DECAY = 0.9, 0.999


class Evolution:
    """Weights (W,) and their search: `asked` for changed ones, `told` how costly each is."""

    def __init__(
        self, weights: Floats, *, sigma: float, learning_rate: float, decay: float = 0.0, seed: int
    ) -> None:
        self.weights = weights.copy()
        self.sigma, self.learning_rate, self.decay = sigma, learning_rate, decay
        self._chance = np.random.default_rng(seed)
        self._changes = np.zeros((0, weights.size))
        self._mean, self._square, self._num = np.zeros(weights.size), np.zeros(weights.size), 0

    def asked(self, num_pairs: int) -> Floats:
        """Weights (2 * num_pairs, W) around the present ones, each change also turned around."""
        half = self._chance.standard_normal((num_pairs, self.weights.size))
        self._changes = np.concatenate([half, -half])
        return self.weights + self.sigma * self._changes

    def told(self, costs: Floats) -> None:
        """Move the weights towards what cost less; `costs` (2 * num_pairs,), lower is better."""
        gradient = centred_ranks(costs) @ self._changes / (costs.size * self.sigma)
        gradient += self.decay * self.weights
        self._num += 1
        self._mean += (1.0 - _DECAY) * (gradient - self._mean)
        self._square += (1.0 - _SQUARE_DECAY) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - _DECAY**self._num)
        spread = np.sqrt(self._square / (1.0 - _SQUARE_DECAY**self._num))
        self.weights -= self.learning_rate * mean / (spread + 1e-8)


def centred_ranks(costs: Floats) -> Floats:
    """Ranks from -0.5 for the least to 0.5 for the largest; equals share the mean of theirs."""
    if costs.size < 2:
        return np.zeros(costs.size)
    _, which, counts = np.unique(costs, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_rank = last - (counts + 1) / 2
    ranks: Floats = mean_rank[which] / (costs.size - 1) - 0.5
    return ranks
