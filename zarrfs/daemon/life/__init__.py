"""The life of a mount, from its options to the drain."""
