"""How a node authenticates to another node: the client's side of the SASL mechanisms.

Knows nothing of connections and requests.
"""
