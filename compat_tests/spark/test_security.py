"""Spark's source and sink with a broker that requires TLS and a login: the options reach tasks in other processes."""

import pytest
from pyspark.sql import SparkSession

from barnabas.testing import Broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", None])
def test_there_and_back(spark: SparkSession, mechanism: str | None) -> None:
    """Returns the options of a login by a password over TLS, or by a certificate."""
    users = {"alice": "secret"} if mechanism else None
    with Broker(tls=True, users=users) as broker:
        broker.create_topic("orders")
        java = broker.client_settings("java", user="alice", mechanism=mechanism or "PLAIN")
        options = {f"kafka.{name}": value for name, value in java.items()}
        rows = spark.range(100).selectExpr("cast(id as string) value")
        rows.write.format("barnabas").mode("append").options(**options, topic="orders").save()
        read = spark.read.format("barnabas").options(**options, subscribe="orders").load()
        assert sorted(int(row.value) for row in read.collect()) == list(range(100))
