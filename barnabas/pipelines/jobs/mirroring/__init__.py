"""The parts of the mirror job: which topics are mirrored, their names, their progress, and the offsets of groups.

Know nothing of the command line. ``barnabas.pipelines.jobs.mirror`` is the entry point.
"""
