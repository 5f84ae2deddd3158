"""PTX instructions to the Python functions that execute them."""
