"""The simulator: a problem and a schedule in, predicted times out."""
