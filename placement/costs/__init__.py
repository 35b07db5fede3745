"""Costs without a measurement: the roofline model, shares of measured kernels, other machines."""
