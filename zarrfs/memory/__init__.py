"""Memory: what it is lent for, how much of it there may be, and where the rest waits."""
