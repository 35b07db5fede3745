"""Scripts that measure on real hardware and print the tables of benchmarks/README.md."""
