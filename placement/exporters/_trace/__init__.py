"""Traces of a step: tracks of slices, and the wire format of one kind of trace."""
