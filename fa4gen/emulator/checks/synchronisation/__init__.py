"""Barriers, atomics, and threads that leave."""
