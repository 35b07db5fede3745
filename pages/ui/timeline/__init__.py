"""Timeline and memory: one step, what decides it, and who holds memory."""
