"""One node's requests to another.

Knows nothing of what the requests mean, nor of who leads or coordinates what: a request goes to a node, by its id.
"""
