"""The layouts of Kafka's files, declared with ``construct``: a second reading, independent of the broker's own.

Knows nothing of ``barnabas.log`` and ``barnabas.records``: where those are wrong, this shows it. Declared here are
batches, records, message sets, indexes, producer snapshots, control records, and the records of transactions and share
groups. The fields of group records and of metadata records come from their one declaration in
``barnabas.wire.messages``; their bytes are still read here.
"""
