"""Working with arrays where nothing is mounted: what the commands and scripts share."""

import logging

# What is wrong is raised; whoever wants to see more sets up logging.
logging.getLogger("zarrfs").addHandler(logging.NullHandler())
