"""What restricts a placement: rules, pins, fusion groups."""
