"""The parts of the export job: where its files lie, how each batch is written once, how small files are merged.

Knows nothing of the command line.
"""
