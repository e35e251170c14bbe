"""The parts of the stream job: tables made of topics and files, what the user wrote, records made of its result.

Know nothing of the command line.
"""
