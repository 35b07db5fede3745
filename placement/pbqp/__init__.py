"""Partitioned Boolean quadratic problems: reductions, exact cores, and placement as one of them."""
