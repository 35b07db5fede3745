"""The verbs: what the command line, the pages and a notebook can ask for."""
