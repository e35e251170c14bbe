"""The layouts of Kafka's files, declared with ``construct``, independently of the broker's own code.

Knows nothing of ``barnabas.log`` and ``barnabas.records``, so that it can detect their errors. Batches, records,
message sets, indexes, producer snapshots, control records, and the records of transactions and share groups are
declared here. The fields of group and metadata records are declared in ``barnabas.wire.messages`` only, and decoded
here.
"""
