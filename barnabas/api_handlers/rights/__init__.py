"""The rights that each API needs: one table, and the guards that check requests against it.

Knows nothing of how an API is served. Imported with the first request that a broker with an authorizer gets.
"""
