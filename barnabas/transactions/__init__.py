"""The transaction coordinator: transactional ids, their producers, and the ends of their transactions.

Knows nothing of requests, connections or the records that producers write.
"""
