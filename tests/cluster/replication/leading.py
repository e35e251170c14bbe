"""A fake node for a leader, which the test controls."""

from barnabas.clock import ManualClock
from barnabas.cluster.image.image import BrokerImage
from barnabas.cluster.replication.followers import CommittedIsr


class Leading:
    """Brokers 1, 2 and 3 are alive, with epoch 100 plus their id. Changes of the ISR wait in ``proposed``."""

    def __init__(self, clock=None):
        self.clock = clock or ManualClock()
        self.brokers = {each: BrokerImage(each, 100 + each, bytes(16), {}, fenced=False) for each in (1, 2, 3)}
        self.broker_epoch = 101
        self.lag_time_max = 30.0
        self.proposed = []
        self.looks = set()

    def change_isr(self, change, done):
        self.proposed.append((change, done))

    def look_at(self, look):
        self.looks.add(look)

    def look_no_more(self, look):
        self.looks.discard(look)

    def look(self):
        """Runs the periodic check, after half the time of the lag."""
        for look in list(self.looks):
            look()

    def amend(self, broker_id, **changes):
        self.brokers[broker_id] = self.brokers[broker_id]._replace(**changes)

    def commit(self):
        """Commits the first change as the controller, and responds."""
        change, done = self.proposed.pop(0)
        done(CommittedIsr(change.leader_epoch, change.partition_epoch + 1, tuple(change.isr)), None)

    def refuse(self, error):
        self.proposed.pop(0)[1](None, error)
