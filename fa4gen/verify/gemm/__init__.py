"""Cases, inputs, references and bounds of matrix products."""
