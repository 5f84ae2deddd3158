"""Launch files: YAML with a kernel's launch, its arguments and their data."""
