"""Arrays drawn at random, through a mount and by TensorStore in process: `make bench-shapes`.

`drawing` draws a `geometry.Geometry` from a seed, `subject` builds its files, `rows` measures
them, `report` and `plot` show the distribution of ratios over all seeds.
"""
