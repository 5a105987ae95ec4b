"""One array: its chunks read from a store, shards by range. Blocks; knows nothing of trio."""
