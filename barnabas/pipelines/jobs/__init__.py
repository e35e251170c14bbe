"""The jobs: export, import, backfill, mirror, stream; each a function that ``barnabas pipeline`` calls.

Know nothing of the command line.
"""
