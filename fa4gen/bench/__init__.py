"""Timing against peers on a GPU."""
