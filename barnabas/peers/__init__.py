"""One node's requests to another.

Knows nothing of what the requests mean, nor of leaders and coordinators: a request goes to a node, by its id.
"""
