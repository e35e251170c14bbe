"""Apache Kafka's tools by their names, options and output, over the commands of ``cli/``.

Knows nothing of the protocol: a tool translates its options into those of a command, and the command's JSON into the
tool's lines. What a tool can do and a command cannot is added to the command.
"""
