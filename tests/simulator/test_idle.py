"""Idle stretches against the clock: at every moment a row is either busy or idle."""

import itertools
import random

import pytest

from placement.core.timeline import Span, Timeline, idle_s


@pytest.mark.parametrize("seed", range(30))
def test_every_moment_is_busy_or_idle(seed):
    rng = random.Random(seed)
    spans = []
    for number in range(rng.randrange(8)):
        start = rng.randrange(10)
        row = rng.choice(("cpu:0", "cpu:1"))
        spans.append(Span("compute", f"n{number}", row, start, start + rng.randrange(4)))
    step_s = max((s.end_s for s in spans), default=3.0) + rng.randrange(2)
    idle = idle_s(Timeline(tuple(spans), step_s, "predicted"), "cpu:0")
    for half in range(2 * int(step_s)):
        at_s = half / 2 + 0.25
        busy = any(s.device == "cpu:0" and s.start_s < at_s < s.end_s for s in spans)
        assert busy != any(start < at_s < end for start, end in idle), (seed, at_s)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(idle))
    assert all(start < end for start, end in idle)
