"""ONNX Runtime behind its backend: kernels, sessions, and values that cross between them."""
