"""What if: sliders, and what a placement would do."""
