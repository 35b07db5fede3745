"""The Projects page."""
