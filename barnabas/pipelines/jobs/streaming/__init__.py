"""The parts of the stream job: tables of topics and files, the user's function or SQL, and records of its result.

Know nothing of the command line.
"""
