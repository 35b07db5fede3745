"""Verbs that are carried out in a confined process, and what is said between the two."""
