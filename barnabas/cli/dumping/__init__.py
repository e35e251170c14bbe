"""The rows that ``barnabas dump-log`` prints for each kind of file.

Knows nothing of options and of how rows are printed. ``barnabas.cli.layouts`` decodes the files.
"""
