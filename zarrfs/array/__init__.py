"""One array: its chunks read from a store, shards by range. Blocks; does not depend on trio."""
