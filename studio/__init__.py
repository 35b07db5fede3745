"""The studio on disk: projects, jobs and what of them travels; it knows no page."""
