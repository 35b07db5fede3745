"""One project on disk: its files, placements, pins, rules, history, and who may change it."""
