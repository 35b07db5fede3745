"""Jobs: verbs carried out by processes of their own, and what becomes of their results."""
