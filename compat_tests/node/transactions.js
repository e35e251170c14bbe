// kafkajs in transactions: node transactions.js BOOTSTRAP NAME prints one JSON object of what it saw.
'use strict';

const { Kafka, logLevel } = require('kafkajs');

const [bootstrap, name] = process.argv.slice(2);
const kafka = new Kafka({ clientId: 'transactions', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 20 } });
const target = `${name}-target`;
const seen = { committed: [] };

function transactional() {
  return kafka.producer({ transactionalId: `${name}-id`, idempotent: true, maxInFlightRequests: 1, transactionTimeout: 30000 });
}

function send(transaction, partition, ...values) {
  return transaction.send({ topic: target, messages: values.map((value) => ({ partition, value })) });
}

function read(readUncommitted, count) {
  return new Promise(async (resolve, reject) => {
    const values = [[], []];
    const consumer = kafka.consumer({ groupId: `${name}-${readUncommitted}`, readUncommitted });
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    await consumer.connect();
    await consumer.subscribe({ topics: [target], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        values[partition].push(`${message.offset}:${message.value}`);
        if (values[0].length + values[1].length === count) resolve({ values, consumer });
      },
    });
  }).then(async ({ values, consumer }) => {
    await consumer.disconnect();
    return values;
  });
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: target, numPartitions: 2 }] });

  const zombie = transactional();
  await zombie.connect();
  const turns = [['commit', 5], ['abort', 6], ['commit', 7]];
  for (const [end, offset] of turns) {
    const transaction = await zombie.transaction();
    await send(transaction, 0, `${end} ${offset}`, 'more');
    await send(transaction, 1, `${end} ${offset}`);
    await transaction.sendOffsets({ consumerGroupId: `${name}-group`, topics: [{ topic: target, partitions: [{ partition: 0, offset: `${offset}` }] }] });
    await transaction[end]();
  }
  const left = await zombie.transaction();
  await send(left, 0, 'left open');

  const successor = transactional();
  await successor.connect();
  const transaction = await successor.transaction();
  await send(transaction, 0, 'of the successor');
  try {
    await left.commit();
    seen.fenced = 'not at all';
  } catch (error) {
    seen.fenced = error.type || error.name;
  }
  await transaction.commit();

  seen.committed = await read(false, 7);
  seen.everything = await read(true, 11);
  const [{ partitions }] = await admin.fetchOffsets({ groupId: `${name}-group`, topics: [target] });
  seen.offset = partitions.find(({ partition }) => partition === 0).offset;
  await successor.disconnect();
  await zombie.disconnect();
  await admin.disconnect();
  process.stdout.write(JSON.stringify(seen));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
