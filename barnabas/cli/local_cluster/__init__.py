"""A cluster on one machine: its files, its processes, and how it is steered.

Knows nothing of options, nor of what a node does.
"""
