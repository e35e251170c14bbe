"""What the bytes of a record's value mean: text, JSON, Avro, Protobuf, with a schema registry or without.

Knows nothing of topics and offsets: columns go in, columns come out.
"""
