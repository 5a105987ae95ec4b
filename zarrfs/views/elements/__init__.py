"""Elements of an array in file order, and the parts of chunks that contain them."""
