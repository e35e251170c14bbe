"""What an export is made of: where its files lie, how a batch gets there once, how small files become large ones.

Knows nothing of the command line.
"""
