"""What ``barnabas dump-log`` shows of each kind of file, row by row.

Knows nothing of options and of how rows are printed. Everything is read by ``barnabas.cli.layouts``.
"""
