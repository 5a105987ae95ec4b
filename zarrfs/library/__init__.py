"""Working with arrays where nothing is mounted: what the commands and scripts share."""

import logging

# Errors are raised; programs that want more set up logging.
logging.getLogger("zarrfs").addHandler(logging.NullHandler())
