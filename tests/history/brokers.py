"""The broker under test, behind a proxy that is its advertised address: Barnabas, or Apache Kafka to try the judge on.

Knows nothing of what is done to it, or why.
"""

import os
import signal
from pathlib import Path
from typing import Protocol

from compat_tests.apache_kafka.apache import ApacheKafka
from compat_tests.running import ALONE, BarnabasProcess
from tests.history.proxy import Proxy

HASTE = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


class Broker(Protocol):
    """A broker that clients reach by ``bootstrap`` whichever port it has itself."""

    bootstrap: str

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def complaints(self) -> list[str]: ...


class Planted(BarnabasProcess):
    """A process of Barnabas with a mistake planted in it, if it is given one (planted.py)."""

    mistake: str | None = None

    def command(self) -> list[str]:
        command = super().command()
        if self.mistake is not None:
            program = command.index("-m")
            command[program : program + 2] = [str(Path(__file__).with_name("planted.py")), self.mistake]
        return command


class Barnabas:
    """``barnabas serve`` with its data in ``home``."""

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        self.proxy = proxy
        self.bootstrap = f"127.0.0.1:{proxy.port}"
        advertised = {"advertised.listeners": f"PLAINTEXT://{self.bootstrap}"}
        self.process = Planted(home, {**HASTE, **advertised}, {"transaction.version": level})
        self.process.mistake = mistake

    def start(self) -> None:
        self.process.start()
        self.proxy.target = self.process.port

    def stop(self) -> None:
        self.resume()
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        assert self.process.process is not None
        os.kill(self.process.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.process.process is not None:
            os.kill(self.process.process.pid, signal.SIGCONT)

    def complaints(self) -> list[str]:
        return self.process.complaints()


class Apache:
    """Apache Kafka with its data in ``home``; mistakes are not planted in it."""

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        assert mistake is None
        self.proxy = proxy
        self.bootstrap = f"127.0.0.1:{proxy.port}"
        haste = {
            **ALONE,
            **HASTE,
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "5",
        }
        self.process = ApacheKafka(home, haste, features={"transaction.version": level})

    def start(self) -> None:
        self.process.start()
        self.proxy.target = self.process.port

    def stop(self) -> None:
        self.resume()
        self.process.stop()

    def kill(self) -> None:
        self.process.stop(kill=True)

    def pause(self) -> None:
        assert self.process.process is not None
        os.kill(self.process.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.process.process is not None:
            os.kill(self.process.process.pid, signal.SIGCONT)

    def complaints(self) -> list[str]:
        return []


BROKERS = {"barnabas": Barnabas, "apache": Apache}
