"""The edges of a plan, and the cases that reach them: solved for, not random."""
