"""What the list schedulers share: ranks, lanes of busy devices, gaps, earliest times."""
