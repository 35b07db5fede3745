"""The Run page: what runs and training runs have measured."""
