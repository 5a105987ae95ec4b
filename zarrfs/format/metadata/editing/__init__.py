"""Changes stored documents in place."""
