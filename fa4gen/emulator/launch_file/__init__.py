"""Launch files: how a kernel is to be launched, and with what, as YAML."""
