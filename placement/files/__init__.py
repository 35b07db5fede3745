"""Files: written whole or not at all, read with limits, and where the studio keeps its own."""
