"""What the benchmark of predictions is made of: networks that nothing was fitted to, placements."""
