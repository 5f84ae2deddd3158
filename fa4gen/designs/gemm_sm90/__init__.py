"""The plan of a matrix product on sm_90a."""
