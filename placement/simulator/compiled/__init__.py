"""The loops of the simulator and of the searches that drive it, compiled."""
