"""A cluster on one machine: its files, its processes, and the commands to its supervisor.

Knows nothing of options, nor of what a node does.
"""
