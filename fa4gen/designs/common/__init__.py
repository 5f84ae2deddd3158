"""The common part of several designs: the parts of a plan, hardware, memory, roles."""
