"""One module for each format, with a table of the types that the format can represent."""
