"""Lessons: tasks on a problem, the checks that mark them, and what is handed in."""
