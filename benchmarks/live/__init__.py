"""What happens on this computer: lanes, hand-overs, overheads, and predictions held against it."""
