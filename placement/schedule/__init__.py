"""From a placement to its schedule: orders, segments, stages and calls."""
