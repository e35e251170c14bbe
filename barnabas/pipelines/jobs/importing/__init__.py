"""The parts of the import job: what it is told, rows of files, rows of tables, and rows as records.

Knows nothing of the command line.
"""
