"""What mirrors one cluster to another: which topics, under which names, how far, and where groups go on.

Knows nothing of the command line; ``barnabas.pipelines.jobs.mirror`` is its face.
"""
