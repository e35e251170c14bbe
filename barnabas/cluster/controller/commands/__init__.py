"""The commands of the controller, and their results, by what they are about.

Knows nothing of requests, nor of how commands are decided: a handler turns a request into a command. Errors in results
are exceptions, or None. A module is imported where its commands are used, which makes the start of a node faster.
"""
