"""Expressions of masks, scores and activations: one text, read once, computed in several ways.

``parse`` checks a text and makes a tree of it. ``tree.evaluate`` walks the tree with the operations
of a namespace: NumPy's give arrays, ``c_text`` gives C, ``exact`` whole numbers of any size,
``float32`` floats as a kernel has them, and ``intervals`` gives, over any of these, what an
expression may become where its variables are only known by their ends. A kernel and its reference
therefore have one definition.
"""
