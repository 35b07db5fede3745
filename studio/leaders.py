"""Which of some placements are the best, and how it is said: one rule for all who tell of it."""

from collections.abc import Collection, Mapping, Sequence

# Values that differ by less are alike.
SAME = 1e-9
MOST_NAMED = 4


def leaders(values: Mapping[str, float], not_found: Collection[str] = ()) -> tuple[str, ...]:
    """Names of those that no other is better than; values differ by rounding at most.

    What methods found stands before what was `not_found` by one, as made by hand or brought in a
    file; else they are in the alphabet's order, so that all who name one of them name the same one.
    """
    least = min(values.values(), default=0.0)
    names = (name for name, value in values.items() if value <= least * (1 + SAME))
    return tuple(sorted(names, key=lambda name: (name in not_found, name)))


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
