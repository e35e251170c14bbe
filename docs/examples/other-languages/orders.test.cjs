// Tests of JavaScript against a broker of their own: npm install kafkajs && node --test
'use strict';

const { test, before, after, beforeEach } = require('node:test');
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { mkdtempSync, existsSync, readFileSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { Kafka, logLevel } = require('kafkajs');

let broker, ready, folder;

// Asks the admin API.
async function admin(method, path, body) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(ready.admin + path, { method, body: text });
  const told = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${told}`);
  return told ? JSON.parse(told) : null;
}

async function publish(value) {
  const kafka = new Kafka({ clientId: 'shop', brokers: [ready.bootstrap_servers], logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 20 } });
  const producer = kafka.producer({ allowAutoTopicCreation: true });
  await producer.connect();
  await producer.send({ topic: 'orders', messages: [{ key: 'ann', value }] });
  await producer.disconnect();
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'barnabas-'));
  const file = join(folder, 'ready.json');
  broker = spawn(process.env.BARNABAS ?? 'barnabas',
    ['serve', '--dev', '--port', '0', '--ready-file', file, '--parent-pid', String(process.pid)], { stdio: 'ignore' });
  while (!existsSync(file)) await new Promise((done) => setTimeout(done, 20));
  ready = JSON.parse(readFileSync(file, 'utf8'));
});

after(async () => {
  const ended = new Promise((done) => broker.once('exit', done));
  broker.kill();
  await ended;
  rmSync(folder, { recursive: true });
});

beforeEach(() => admin('POST', '/reset'));

test('an order is published', async () => {
  await admin('POST', '/topics', { name: 'orders' });
  await publish('tea');
  const [record] = await admin('GET', '/topics/orders/records');
  assert.deepEqual([record.key, record.value], ['ann', 'tea']);
});

test('an order survives a leader that moves', async () => {
  await admin('POST', '/topics', { name: 'orders' });
  const rule = await admin('POST', '/faults', { api: 'Produce', nth: 1, error: 'NOT_LEADER_OR_FOLLOWER' });
  await publish('tea');
  assert.equal((await admin('GET', `/faults/${rule.id}`)).hits, 1);
  assert.equal((await admin('GET', '/topics/orders/records')).length, 1);
});

test('orders are kept for an hour', async () => {
  await admin('POST', '/topics', { name: 'orders', configs: { 'retention.ms': 3600000 } });
  await publish('tea');
  await admin('POST', '/clock/advance', { hours: 7 });
  assert.deepEqual(await admin('GET', '/topics/orders/records'), []);
});
