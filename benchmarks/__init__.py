"""Scripts that print the tables of benchmarks/README.md."""
