"""Work for threads and for worker processes."""
