// kafkajs's client of schema registries: node registry.js URL prints one JSON object of what it saw.
'use strict';

const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry');

const order = { table: 7, drink: 'tea' };
const avro = { type: 'record', name: 'Order', namespace: 'cafe', fields: [{ name: 'table', type: 'int' }, { name: 'drink', type: 'string' }] };
const json = { type: 'object', properties: { table: { type: 'integer' }, drink: { type: 'string' } }, required: ['table'] };
const schemas = {
  AVRO: JSON.stringify(avro),
  JSON: JSON.stringify(json),
  PROTOBUF: 'syntax = "proto3"; package cafe; message Order { int32 table = 1; string drink = 2; }',
};

async function main() {
  const registry = new SchemaRegistry({ host: process.argv[2] });
  const seen = { back: {}, ids: {} };
  for (const [type, schema] of Object.entries(schemas)) {
    const subject = `${type.toLowerCase()}-value`;
    const { id } = await registry.register({ type: SchemaType[type], schema }, { subject });
    seen.back[type] = await registry.decode(await registry.encode(id, order));
    seen.ids[type] = [id, await registry.getLatestSchemaId(subject), await registry.getRegistryId(subject, 1)];
  }
  const other = { ...avro, fields: [...avro.fields, { name: 'size', type: 'int' }] };
  const refused = { type: SchemaType.AVRO, schema: JSON.stringify(other) };
  seen.refused = await registry.register(refused, { subject: 'avro-value' }).catch((error) => error.message);
  seen.missing = await registry.getLatestSchemaId('none').catch((error) => error.message);
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
