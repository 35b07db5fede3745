"""Training steps that are watched while they run, and probes of what the machine still gives."""
