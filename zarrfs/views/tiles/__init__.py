"""Files of computed bytes and of boxes of arrays, each of which is contiguous in the file."""
