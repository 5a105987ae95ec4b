"""What `docs/formats.py` finds out: small arrays of every kind, and who reads them."""
