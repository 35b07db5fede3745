"""The wing that touches the machine: finds devices, measures kernels and links, runs live."""
