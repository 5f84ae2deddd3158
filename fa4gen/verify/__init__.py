"""References, inputs, tolerances and verdicts."""
