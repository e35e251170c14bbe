"""The parts of the backfill job: its options, its plan, how an export is read, and how records are written once.

Know nothing of the command line.
"""
