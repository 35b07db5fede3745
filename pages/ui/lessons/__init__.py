"""Lessons: their list, and the panel beside the work."""
