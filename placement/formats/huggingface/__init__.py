"""Models of the transformers library, known by their configurations."""
