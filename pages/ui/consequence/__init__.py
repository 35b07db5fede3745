"""What an edit would do, shown before it is made; and what the last one did."""
