"""What to do about a placement: the best single moves, what limits it, placing anew."""
