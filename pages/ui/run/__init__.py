"""Runs: what runs and training runs have measured."""
