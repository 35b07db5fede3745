"""Scopes: the path of blocks that each op belongs to, from whatever a file tells."""
