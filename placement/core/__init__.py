"""Values that every other part speaks in: frozen, checked once, free of hardware and clocks."""
