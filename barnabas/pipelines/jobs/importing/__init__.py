"""The parts of the import job: its options, the import of files and of tables, and rows as records.

Know nothing of the command line.
"""
