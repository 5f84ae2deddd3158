"""The arithmetic itself, over rows with one entry per lane; it knows no instruction."""
