"""Record batches, the format that the wire and the log share. Older formats are converted from and to it.

Knows nothing of requests, topics or files: a batch is bytes.
"""
