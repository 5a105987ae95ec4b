"""Speed through a mount, side by side with the best libraries in process: `make bench`."""
