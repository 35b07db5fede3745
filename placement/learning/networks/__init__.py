"""Networks of learned placers, in PyTorch."""
