"""The runtime under every coordinator: shards that are elected, loaded and resigned.

Knows nothing of groups, transactions or share partitions.
"""
