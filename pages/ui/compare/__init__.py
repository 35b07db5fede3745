"""Comparing: the board of all methods, and how two placements differ."""
