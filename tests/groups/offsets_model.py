"""What offsets are committed, and which are not stable, by what the log alone says.

One sentence: of each partition the last record counts that is either in no transaction, or in one that has committed.
"""


class Model:
    """The log: what was written of each position and by whom, in order, and what became of each transaction."""

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
