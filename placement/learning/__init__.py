"""Learning where to put units: environments that value placements, policies, and their training."""
