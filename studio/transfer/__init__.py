"""Projects as single files: packed here, and read from elsewhere without trusting them."""
