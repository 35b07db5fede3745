"""One browser session: what it has chosen, its cache, its callbacks, its right to write."""
