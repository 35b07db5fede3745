"""What an ONNX file claims, compared with what it holds, before a library computes anything."""
