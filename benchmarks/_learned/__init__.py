"""Cases, rows and made-up graphs of the benchmarks of what learns."""
