"""YAML files to validated configs, with positions in errors, and sweeps."""
