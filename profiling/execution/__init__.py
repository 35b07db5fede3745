"""Live runs: schedules carried out on devices, step by step or as a pipeline."""
