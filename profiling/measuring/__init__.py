"""Measured costs: seconds of kernels, latency and bandwidth of links, the profiles they make."""
