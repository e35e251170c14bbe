"""``barnabas proxy`` as a process, and requests through it.

Knows nothing of what is tested.
"""

import re
import signal
import subprocess
import sys

from kafka import KafkaProducer

WAIT_S = 20


class Proxying:
    """A process of the proxy before a cluster."""

    def __init__(self, to, *arguments):
        command = [sys.executable, "-m", "barnabas", "proxy", "--listen", "127.0.0.1:0", "--to", to, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.to = to

    def __enter__(self):
        said = self.process.stdout.readline()
        found = re.fullmatch(r"127\.0\.0\.1:(\d+) leads to (.+)\n", said)
        assert found, said + self.process.stderr.read()
        assert found[2] == self.to
        self.bootstrap_servers = f"127.0.0.1:{found[1]}"
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT_S)

    def stop(self):
        """Stops it as Ctrl-C does. Returns its output since."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0
        self.logged = err
        return out


def send(proxying, *values, topic="orders", **settings):
    producer = KafkaProducer(bootstrap_servers=proxying.bootstrap_servers, **settings)
    for value in values:
        producer.send(topic, value).get(10)
    producer.close()
