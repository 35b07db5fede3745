"""Splits of profiled workloads over accelerators and CPUs: instances, engines and bounds."""
