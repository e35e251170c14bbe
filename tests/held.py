"""A background that a test holds back. Knows nothing of what is done in it."""


class Held:
    """A background in which nothing happens until the test lets it."""

    def __init__(self):
        self.work = []

    def run(self, work, done=None):
        self.work.append((work, done))

    def close(self):
        pass

    def go_on(self, failing=None):
        waiting, self.work = self.work, []
        for work, done in waiting:
            if failing is None:
                work()
            if done is not None:
                done(failing)
