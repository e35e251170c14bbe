"""The transaction coordinator: transactional ids, their producers, and the ends of their transactions."""
