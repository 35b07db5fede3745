"""ONNX Runtime through its C API: sessions whose runs need no interpreter."""
