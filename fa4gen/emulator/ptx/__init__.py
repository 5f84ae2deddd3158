"""PTX text in, instructions out."""
