"""PyTorch programs: exported or traced, made functional, as graphs and as source."""
