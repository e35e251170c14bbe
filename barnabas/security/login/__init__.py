"""How a node proves who it is to another node: the client's side of the SASL mechanisms.

Knows nothing of connections and requests.
"""
