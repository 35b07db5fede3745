"""Simulated annealing of splits, for throughput and for latency by calls."""
