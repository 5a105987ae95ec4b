"""A picture of what is stored of an array: `figure` has its content, `svg` and `png` draw it."""
