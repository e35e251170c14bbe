"""What a backfill is made of: what is read of an export, in which pieces, and how a piece is written once.

Knows nothing of the command line.
"""
