"""Compiled sweep along a row of units: what parts of one device are worth, by their load."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.row import Labels, RowArrays
from placement.splits.model.instance import Bools


@jit
def worth_by_load(
    row: RowArrays, price: Floats, cap_s: float, num_steps: int, safe: bool
) -> tuple[Floats, Floats, Ints, Labels]:
    """Loads up to `cap_s`, rising, what a part may be worth with each, its last label, all labels.

    A part is worth the prices (U,) of its units. Loads are told apart in `num_steps` steps. Of two
    parts in one step and state the dearer is kept; if `safe` with the smaller load of both, so that
    no part is worth more than what is told for its load. A label is twice the label before, plus
    one where the unit is in.
    """
    order, work_s, may, first, after, paid_s = row
    most = 0
    for i in range(len(first) - 1):
        most = max(most, first[i + 1] - first[i])
    per_s = num_steps / cap_s
    width = num_steps + 1
    # What is kept of each state, by rising load, and what the next place has in its steps.
    worth, load, label = (
        np.zeros((most, width)),
        np.zeros((most, width)),
        np.zeros((most, width), np.int64),
    )
    live = np.zeros(most, np.int64)
    next_worth, next_load, next_label = (
        np.zeros((most, width)),
        np.zeros((most, width)),
        np.zeros((most, width), np.int64),
    )
    labels = np.zeros(1 << 16, np.int32)
    live[0] = 1
    num_labels = 1
    for i in range(len(order)):
        u = order[i]
        num, num_next = first[i + 1] - first[i], first[i + 2] - first[i + 1]
        next_worth[:num_next] = -np.inf
        for s in range(num):
            at = first[i] + s
            for choice in range(2 if may[u] else 1):
                to = after[at, choice]
                more_s = paid_s[at, choice]
                gain = 0.0
                if choice == 1:
                    more_s += work_s[u]
                    gain = price[u]
                for g in range(live[s]):
                    then_s = load[s, g] + more_s
                    if then_s > cap_s:
                        break
                    value = worth[s, g] + gain
                    h = min(int(then_s * per_s), num_steps)
                    if value > next_worth[to, h]:
                        less = safe and next_worth[to, h] > -np.inf and next_load[to, h] < then_s
                        next_worth[to, h] = value
                        next_label[to, h] = 2 * label[s, g] + choice
                        if not less:
                            next_load[to, h] = then_s
                    elif then_s < next_load[to, h] and (safe or value == next_worth[to, h]):
                        next_load[to, h] = then_s
        while num_labels + num_next * width > len(labels):
            longer = np.zeros(2 * len(labels), np.int32)
            longer[:num_labels] = labels[:num_labels]
            labels = longer
        for s in range(num_next):
            best, kept = -np.inf, 0
            for g in range(width):
                if next_worth[s, g] > best:
                    best = next_worth[s, g]
                    worth[s, kept], load[s, kept] = best, next_load[s, g]
                    labels[num_labels], label[s, kept] = next_label[s, g], num_labels
                    num_labels += 1
                    kept += 1
            live[s] = kept
    return load[0, : live[0]].copy(), worth[0, : live[0]].copy(), label[0, : live[0]].copy(), labels


@jit
def units_of(row: RowArrays, label: int, labels: Labels) -> Bools:
    """Whether each unit (U,) is in the part of a label."""
    held = np.zeros(len(row.order), np.bool_)
    for i in range(len(row.order) - 1, -1, -1):
        both = labels[label]
        held[row.order[i]] = both % 2 == 1
        label = both // 2
    return held
