"""Matrix products and memory of the tensor cores of Blackwell."""
