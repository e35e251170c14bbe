"""Record batches: the one format that the wire and the log share."""
