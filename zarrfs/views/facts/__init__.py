"""Facts about an array: what its elements mean, whatever the convention that says so.

`gather.gather` works them out once, from the metadata of the array and of the groups above it.
Formats translate facts and decide nothing. Everything here is pure and raises nothing for metadata
of any kind: a fact that is unknown, or not understood, is left out.
"""
