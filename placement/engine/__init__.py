"""The compiled simulator: placements as integers in, seconds out."""
