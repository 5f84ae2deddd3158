"""Loads, stores and atomics of the generic proxy."""
