"""Apache Kafka's tools with their names, options and output, on top of the commands of ``cli/``.

Knows nothing of the protocol: a tool translates its options into those of a command, and the command's JSON into the
tool's lines. A function that a command lacks is added to the command.
"""
