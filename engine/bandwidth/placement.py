"""Where nodes stand: the order a matrix is drawn in, and the boundaries a run can cross.

From the target's own placement, or from a file: `{"node": {"az": …, "layers": [l1, l2, l3], "block": …, "ultraserver": …}}`.
"""
