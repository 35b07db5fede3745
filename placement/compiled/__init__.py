"""How array code is compiled, where it is kept, and its random numbers."""
