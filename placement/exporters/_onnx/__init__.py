"""ONNX models as exports need them: cut into parts, typed and saved."""
