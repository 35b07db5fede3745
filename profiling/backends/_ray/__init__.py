"""Devices of other computers, over Ray: see `profiling.backends.ray`."""
