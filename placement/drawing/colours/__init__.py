"""What colour everything has: one palette, scales, and the tones of a view."""
