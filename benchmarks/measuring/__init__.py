"""Time, memory and pages of the machine that a benchmark runs on, and programs in C."""
