"""TIFF: its directories (IFDs), the tags of the facts about an array, and pyramids of tiles."""
