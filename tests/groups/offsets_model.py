"""A model of committed and pending offsets, from the log alone.

The offset of a partition is that of the last record outside of a transaction, or in a committed one.
"""


class Model:
    """The log: the records of each position with their producers, in order, and the end of each transaction."""

    def __init__(self):
        self.written = []  # [group, partition, value, producer or None, "open" | "commit" | "abort"]

    def write(self, group, partition, value, producer=None):
        self.written.append([group, partition, value, producer, "open" if producer else "commit"])

    def end(self, producer, is_commit):
        for row in self.written:
            if row[3] == producer and row[4] == "open":
                row[4] = "commit" if is_commit else "abort"

    def forget(self, group, partition=None):
        self.written = [row for row in self.written if row[0] != group or partition not in (None, row[1])]

    def committed(self, group):
        return {row[1]: row[2] for row in self.written if row[0] == group and row[4] == "commit"}

    def unstable(self, group):
        return {row[1] for row in self.written if row[0] == group and row[4] == "open"}
