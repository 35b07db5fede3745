"""PyTorch programs as exports need them: by module, by memory, and as text."""
