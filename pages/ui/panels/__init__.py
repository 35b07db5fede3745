"""Panels that several pages show."""
