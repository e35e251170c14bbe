// kafkajs against a broker: node smoke.js BOOTSTRAP NAME prints one JSON object of what it saw.
'use strict';

const { Kafka, CompressionTypes, logLevel } = require('kafkajs');

const [bootstrap, name] = process.argv.slice(2);
const kafka = new Kafka({ clientId: 'smoke', brokers: [bootstrap], logLevel: logLevel.NOTHING });
const seen = {};

function consume(groupId, count, fromBeginning) {
  return new Promise(async (resolve, reject) => {
    const records = [];
    const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500 });
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    await consumer.connect();
    await consumer.subscribe({ topics: [name], fromBeginning });
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        records.push({
          partition,
          offset: message.offset,
          key: message.key && message.key.toString(),
          value: message.value && message.value.toString(),
          header: message.headers.h && message.headers.h.toString(),
        });
        if (records.length === count) resolve({ records, consumer });
      },
    });
  });
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  seen.created = await admin.createTopics({
    waitForLeaders: true,
    topics: [{ topic: name, numPartitions: 2, configEntries: [{ name: 'retention.ms', value: '99999' }] }],
  });
  seen.listed = (await admin.listTopics()).includes(name);
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false, resources: [{ type: 2, name, configNames: ['retention.ms'] }],
  });
  seen.retention = resources[0].configEntries[0].configValue;

  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    seen.sent = await producer.send({
      topic: name,
      acks: -1,
      compression,
      messages: [0, 1, 2].map((n) => ({ partition: n % 2, key: `k${n}`, value: `v${n}`, headers: { h: `${n}` } })),
    });
  }

  const first = await consume(`${name}-group`, 6, true);
  seen.first = first.records;
  await first.consumer.commitOffsets([{ topic: name, partition: 0, offset: '4' }, { topic: name, partition: 1, offset: '2' }]);
  const described = await admin.describeGroups([`${name}-group`]);
  seen.group = { state: described.groups[0].state, members: described.groups[0].members.length };
  await first.consumer.disconnect();
  seen.offsets = await admin.fetchOffsets({ groupId: `${name}-group`, topics: [name] });

  await producer.send({ topic: name, messages: [{ partition: 1, key: 'last', value: null }] });
  const second = await consume(`${name}-group`, 1, true);
  seen.second = second.records;
  await second.consumer.disconnect();

  seen.ends = await admin.fetchTopicOffsets(name);
  await admin.deleteGroups([`${name}-group`]);
  await admin.deleteTopics({ topics: [name] });
  await producer.disconnect();
  await admin.disconnect();
  process.stdout.write(JSON.stringify(seen));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
