"""Orders of a topic, decoded; what was taken in each quarter of an hour to another topic, and all orders to a table."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.pipelines.values import Json, decode_value

CLUSTER = {"kafka.bootstrap.servers": os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")}
ORDER = Json(schema="id BIGINT, at TIMESTAMP, product STRING, count INT, price DOUBLE")

dp.create_sink(
    "takings", "barnabas", {**CLUSTER, "topic": "takings", "delivery": "exactly-once", "sinkId": "takings"}
)


@dp.table
def orders() -> DataFrame:
    """Each order, with where it stood in the topic."""
    spark = SparkSession.active()
    records = spark.readStream.format("barnabas").options(**CLUSTER, subscribe="orders").load()
    return decode_value(records, "value", ORDER).select("value.*", "partition", "offset")


@dp.append_flow(target="takings")
def takings_by_quarter() -> DataFrame:
    """A record for each product and quarter of an hour that is over, keyed by product."""
    spark = SparkSession.active()
    quarter = f.window("at", "15 minutes")
    taken = (
        spark.readStream.table("orders")
        .withWatermark("at", "1 minute")
        .groupBy(quarter, "product")
        .agg(f.round(f.sum(f.col("count") * f.col("price")), 2).alias("taken"))
    )
    return taken.select(
        f.col("product").alias("key"),
        f.to_json(f.struct(f.col("window.start").alias("from"), "product", "taken")).alias("value"),
    )
