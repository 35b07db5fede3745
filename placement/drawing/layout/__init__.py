"""Where a graph is drawn: blocks that open and close, layers, columns."""
