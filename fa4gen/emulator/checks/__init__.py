"""The checks for errors that results need not show, such as races and missing fences."""
