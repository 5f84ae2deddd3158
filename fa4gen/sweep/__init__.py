"""Runs the cases of a sweep in worker processes and keeps their results."""
