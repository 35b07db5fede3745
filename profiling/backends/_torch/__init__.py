"""PyTorch behind its backend: kernels, memories, and the values that cross between them."""
