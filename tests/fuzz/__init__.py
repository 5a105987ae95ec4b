"""Hostile data without end: ``make fuzz TIME=600``.

A case is a target, a seed and a number, and nothing else: what is found can be run again by these
three (``python -m tests.fuzz --target streams --seed 1 --first 4711 --cases 1``). `run` runs cases
in a process of their own, and notices crashes, hangs, memory and every exception that is none of
ours.
"""
