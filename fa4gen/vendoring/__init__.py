"""Taking kernels into other projects: C launcher, adapters, lock file, update."""
