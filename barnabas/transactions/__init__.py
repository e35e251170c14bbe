"""The transaction coordinator: who holds which transactional id, and how each transaction ends."""
