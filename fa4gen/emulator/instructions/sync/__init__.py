"""Barriers, fences, warps and clusters."""
