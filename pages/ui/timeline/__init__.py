"""The Timeline page: one step, what decides it, and who holds memory."""
