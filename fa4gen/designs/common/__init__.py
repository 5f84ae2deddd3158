"""What several designs have in common: the parts of a plan, hardware, memory, roles."""
