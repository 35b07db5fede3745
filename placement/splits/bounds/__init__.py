"""Bounds on what any split of a workload can reach."""
