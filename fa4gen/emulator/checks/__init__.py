"""The checks: what values do not show."""
