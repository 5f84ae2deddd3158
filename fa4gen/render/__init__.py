"""Templates to files: the Jinja environment, writing, the manifest, checking."""
