"""kcat, from its command line."""
