"""How a mount's source is opened, and what stands around it."""
