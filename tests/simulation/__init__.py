"""A whole cluster in one process under a virtual clock, replayed from one seed."""
