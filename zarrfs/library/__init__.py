"""Working with arrays where nothing is mounted: what the commands and scripts share."""
