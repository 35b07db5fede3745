"""ONNX models: read, checked and prepared; their graph, costs, names and executable side."""
