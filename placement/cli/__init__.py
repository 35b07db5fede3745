"""The command line: options, verbs, and what they print."""
