"""The What-if page: sliders, and what a placement would do."""
