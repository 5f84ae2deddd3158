"""Arithmetic, logic, conversions and moves of single registers."""
