"""Orders of a topic: all of them to a table, and what was taken in each quarter of an hour to another topic."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.pipelines.values import Json, decode_value

CLUSTER = {"kafka.bootstrap.servers": os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")}
ORDER = Json(schema="id BIGINT, at TIMESTAMP, product STRING, count INT, price DOUBLE")

dp.create_sink("takings", "barnabas", {**CLUSTER, "topic": "takings", "delivery": "exactly-once"})


def decoded_orders() -> DataFrame:
    """Each order, with where it stands in the topic."""
    spark = SparkSession.active()
    records = spark.readStream.format("barnabas").options(**CLUSTER, subscribe="orders", startingOffsets="earliest")
    return decode_value(records.load(), "value", ORDER).select("value.*", "partition", "offset")


@dp.table
def orders() -> DataFrame:
    """All of them, as a table."""
    return decoded_orders()


@dp.append_flow(target="takings")
def takings_by_quarter() -> DataFrame:
    """A record for each product and quarter of an hour that is over, keyed by product."""
    taken = (
        decoded_orders()
        .withWatermark("at", "1 minute")
        .groupBy(f.window("at", "15 minutes"), "product")
        .agg(f.round(f.sum(f.col("count") * f.col("price")), 2).alias("taken"))
    )
    return taken.select(
        f.col("product").alias("key"),
        f.to_json(f.struct(f.col("window.start").alias("from"), "product", "taken")).alias("value"),
    )
