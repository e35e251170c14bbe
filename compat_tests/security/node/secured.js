// kafkajs over TLS and SASL: node secured.js SETTINGS TOPIC COUNT writes an aborted and a committed transaction, and
// prints what a group reads, and the group's offset, as one JSON object.
'use strict';

const fs = require('fs');
const { Kafka, logLevel } = require('kafkajs');

const [file, topic, count] = process.argv.slice(2);
const { bootstrap, authority, certificate, key, mechanism, user, password, token } = JSON.parse(fs.readFileSync(file));
const settings = { clientId: 'secured', brokers: [bootstrap], logLevel: logLevel.ERROR, retry: { retries: 8 } };
if (authority) settings.ssl = { ca: [fs.readFileSync(authority)] };
if (certificate) Object.assign(settings.ssl, { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) });
if (token) settings.sasl = { mechanism, oauthBearerProvider: async () => ({ value: token }) };
else if (mechanism) settings.sasl = { mechanism, username: user, password };
const kafka = new Kafka(settings);

async function write() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1 }] });
  await admin.disconnect();
  const producer = kafka.producer({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const refused = await producer.transaction();
  await refused.send({ topic, messages: [{ value: 'aborted' }] });
  await refused.abort();
  const transaction = await producer.transaction();
  const messages = [...Array(Number(count)).keys()].map((n) => ({ value: `${n} ${'x'.repeat(10000)}` }));
  await transaction.send({ topic, messages });
  await transaction.commit();
  await producer.disconnect();
}

function read() {
  return new Promise(async (resolve, reject) => {
    const values = [];
    const consumer = kafka.consumer({ groupId: topic, sessionTimeout: 30000, heartbeatInterval: 500 });
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => {
        values.push(message.value.toString());
        if (values.length === Number(count)) resolve({ values, consumer });
      },
    });
  });
}

async function main() {
  await write();
  const { values, consumer } = await read();
  await consumer.disconnect();
  const admin = kafka.admin();
  await admin.connect();
  const [{ partitions }] = await admin.fetchOffsets({ groupId: topic, topics: [topic] });
  await admin.disconnect();
  process.stdout.write(JSON.stringify({ values, offset: partitions[0].offset }));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
