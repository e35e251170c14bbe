"""Groups and their members, as state machines: classic, consumer, share and streams groups.

They know no sockets, no requests and no logs. A command is a call with a callback for the response, records go out
through one function, and clock and scheduler are passed in.
"""
