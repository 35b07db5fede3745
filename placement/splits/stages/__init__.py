"""Pipeline stages of models: contiguous parts of a graph whose tensors cross links."""
