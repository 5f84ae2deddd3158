"""Facts from an entry's text alone: registers in use, loads and products under way."""
