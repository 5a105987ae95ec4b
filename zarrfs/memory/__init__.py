"""Memory: the arena that lends buffers, the budget that limits them, and files for the rest."""
