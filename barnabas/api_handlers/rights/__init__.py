"""What each API needs the right for: one table, and the guards that hold requests against it.

Knows nothing of how an API is served. Imported with the first request that a broker with an authorizer gets.
"""
