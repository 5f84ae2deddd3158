"""The plan of a matrix product on sm_100a."""
