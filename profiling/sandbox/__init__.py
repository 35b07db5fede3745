"""Confined processes: what reads or runs a stranger's file gets little memory, time and reach."""
