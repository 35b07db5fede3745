"""The graph as a picture without a browser: geometry, colours and words."""
