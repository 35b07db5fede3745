"""Measurements of language models without weights."""
