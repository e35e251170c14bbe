"""A background executor that runs its work when the test calls it. Knows nothing of the work."""


class Held:
    """Replaces a background thread; the test runs the work."""

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
