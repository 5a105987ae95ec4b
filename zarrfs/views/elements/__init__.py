"""Elements of an array in file order, and the parts of chunks they lie in."""
