"""Exact splits: dynamic programming over ideals and intervals, branch and bound, programs."""
