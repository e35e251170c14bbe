"""kafka-python 1.4 or 2.0, configured for an old broker's version: reads jobs as JSON, and writes their results.

Runs as a program, with the old release first on its path: must not import anything of this repository.
"""

import json
import sys
import time

if sys.version_info >= (3, 12):  # the copy of six in these releases no longer finds its submodules
    import six
    import six.moves

    sys.modules["kafka.vendor.six"] = six
    sys.modules["kafka.vendor.six.moves"] = six.moves

import kafka
from kafka.consumer.fetcher import RecordTooLargeError

SECONDS = 30


def text(data):
    return None if data is None else data.decode()


def data(given):
    return None if given is None else given.encode()


def produce(settings, job):
    producer = kafka.KafkaProducer(compression_type=job.get("codec"), acks=job.get("acks", 1), linger_ms=50, **settings)
    sent = [
        producer.send(job["topic"], value=data(value), key=data(key), partition=0, timestamp_ms=timestamp)
        for key, value, timestamp in job["records"]
    ]
    producer.flush(SECONDS)
    fields_of = [each.get(SECONDS) for each in sent]
    producer.close(SECONDS)
    return [[each.offset, each.timestamp] for each in fields_of]


def fields_of(record):
    headers = [list(each) for each in getattr(record, "headers", None) or ()]
    return [record.offset, record.timestamp, record.timestamp_type, text(record.key), text(record.value), headers]


def poll(consumer, count):
    found, deadline = [], time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        for records in consumer.poll(200).values():
            found += [fields_of(each) for each in records]
    return found


def consume(settings, job):
    consumer = kafka.KafkaConsumer(enable_auto_commit=False, **settings)
    partition = kafka.TopicPartition(job["topic"], 0)
    consumer.assign([partition])
    consumer.seek(partition, job.get("offset", 0))
    found = poll(consumer, job["count"])
    consumer.close()
    return found


def too_small(settings, job):
    """Returns the error's class, from a consumer whose limit is below the message."""
    consumer = kafka.KafkaConsumer(enable_auto_commit=False, max_partition_fetch_bytes=job["limit"], **settings)
    partition = kafka.TopicPartition(job["topic"], 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    try:
        found = poll(consumer, 1)
    except RecordTooLargeError as error:
        return type(error).__name__
    finally:
        consumer.close()
    return found


def group(settings, job):
    """Reads some records of a topic as a member of a group, and returns the group's offset."""
    consumer = kafka.KafkaConsumer(
        group_id=job["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=job["count"],
        **settings,
    )
    partition = kafka.TopicPartition(job["topic"], 0)
    if job["assign"]:  # brokers coordinate members of groups from 0.9 on
        consumer.assign([partition])
    else:
        consumer.subscribe([job["topic"]])
    found = poll(consumer, job["count"])
    consumer.commit()
    committed = consumer.committed(partition)
    consumer.close()
    return {"found": found, "committed": committed}


def offsets(settings, job):
    consumer = kafka.KafkaConsumer(**settings)
    partition = kafka.TopicPartition(job["topic"], 0)
    answer = {"first": consumer.beginning_offsets([partition]), "next": consumer.end_offsets([partition])}
    answer = {name: value[partition] for name, value in answer.items()}
    if "timestamp" in job:
        (at,) = consumer.offsets_for_times({partition: job["timestamp"]}).values()
        answer["at"] = list(at)[:2]
    consumer.close()
    return answer


def main():
    order = json.load(sys.stdin)
    settings = {"bootstrap_servers": order["bootstrap"], "api_version": tuple(order["api_version"])}
    known = {each.__name__: each for each in (produce, consume, too_small, group, offsets)}
    answers = [known[job["do"]](settings, job) for job in order["jobs"]]
    json.dump({"version": kafka.__version__, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
