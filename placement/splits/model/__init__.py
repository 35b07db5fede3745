"""A workload as arrays: its units, contracted, and the placements that splits of them are."""
