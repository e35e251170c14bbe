"""A broker in tests of asyncio."""

import asyncio

from aiokafka import AIOKafkaProducer

from barnabas.testing import AsyncBroker


async def send(broker, value):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop") as producer:
        await producer.send_and_wait("orders", value)


def test_a_broker_in_a_coroutine():
    async def run():
        async with AsyncBroker(num_partitions=1) as broker:
            await broker.create_topic("orders", configs={"retention.ms": 3_600_000})
            broker.record_requests()
            rule = broker.faults.add(api="Produce", nth=1, error="NOT_LEADER_OR_FOLLOWER")
            waiting = asyncio.create_task(broker.wait_for_records("orders", 1))
            await send(broker, b"tea")
            await broker.wait_for_hits(rule)
            assert [record.value for record in await waiting] == [b"tea"]
            assert len(await broker.requests("Produce", "shop")) == 2
            state = await broker.save()
            await broker.advance(hours=7)
            assert await broker.records("orders") == []
            await broker.at("2031-01-01")
            assert broker.broker.clock.time_ms >= 1_924_992_000_000
            broker.freeze()
            assert broker.time_ms == broker.broker.clock.time_ms
            broker.go_on()
            with broker.expect("Produce", client_id="shop", times=1):
                await send(broker, b"milk")
            await broker.restore(state)
            assert [record.value for record in await broker.records("orders")] == [b"tea"]
            assert await broker.seed([{"topic": "orders", "value": "milk"}]) == 1
            await broker.configure_group("cooks", {"share.auto.offset.reset": "earliest"})
            await broker.reset()
            assert await broker.topics() == []
            assert broker.client_settings("aiokafka")["bootstrap_servers"] == broker.bootstrap_servers
            assert await broker.connections() == []

    asyncio.run(run())
