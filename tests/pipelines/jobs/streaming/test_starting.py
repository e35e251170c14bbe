"""The start offsets of the stream job, and its errors for a file without a function, without Spark."""

import json
from pathlib import Path

import pytest
from kafka import KafkaProducer

from barnabas.pipelines.jobs.stream import Stream, StreamOptions
from barnabas.pipelines.jobs.streaming.functions import function_of
from barnabas.testing import Broker


@pytest.mark.parametrize(("delivery", "end"), [("exactly-once", 2), ("at-least-once", 3)])
def test_latest_is_before_a_transaction_that_is_still_open(delivery: str, end: int) -> None:
    """For read_committed the topic would otherwise end before the start, which is data loss."""
    with Broker() as broker:
        broker.create_topic("orders")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="other")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"1").get(timeout=30)
        producer.commit_transaction()  # the record, and its marker
        producer.begin_transaction()
        producer.send("orders", b"2").get(timeout=30)
        options = StreamOptions(
            tables=("orders,format=json,schema=id BIGINT",), sql="SELECT 1", to="out", dead_letters="dead",
            starting_offsets="latest", delivery=delivery, bootstrap_servers=broker.bootstrap_servers,
        )  # fmt: skip
        assert Stream(options)._starting() == {"orders": json.dumps({"orders": {"0": end}})}
        producer.abort_transaction()
        producer.close()


def test_a_function_is_in_a_python_file(tmp_path: Path) -> None:
    path = tmp_path / "clicks.txt"
    path.write_text("def transform(clicks): return clicks\n")
    with pytest.raises(ValueError, match=r"clicks\.txt, which is not a Python file: it must end in \.py"):
        function_of(str(path))
    with pytest.raises(ValueError, match="which is not there"):
        function_of(str(tmp_path / "other.py"))
