"""The Devices page: the machine, and what was measured of it."""
