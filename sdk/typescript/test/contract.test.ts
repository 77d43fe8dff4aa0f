import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Client } from 'lubdub';
import { answer, carrier } from './helpers.js';

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string }[];
  security?: Record<string, unknown>[];
  requestBody?: object;
  'x-idempotent'?: boolean;
  'x-idempotent-by'?: string;
}

const contract = JSON.parse(readFileSync(new URL('../../../api/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};

const otherwise: Record<string, string> = { version: 'serverVersion', openapi: 'openApi' };

// Arguments after the ids of the path, if a call has no body or more than a body.
const given: Record<string, unknown[]> = {
  claimTasks: ['wtok', { max: 1 }],
  exchange: ['wtok', {}],
  workerHeartbeat: ['wtok', {}],
  started: ['ttok', { attempt: 1 }],
  completed: ['ttok', { attempt: 1 }],
  heartbeat: ['ttok', { attempt: 1 }],
  heartbeats: [{ heartbeats: [] }],
  createTasks: [[]],
  listQueues: ['desc'],
  nextFires: [3],
};

for (const [path, operations] of Object.entries(contract.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    test(`the client makes the call ${operation.operationId}`, async () => {
      const { seen, fetch } = carrier(() => answer(200, { results: [] }));
      const client = new Client('http://127.0.0.1:1', { token: 'tok', tenantId: 'acme', workspaceId: 'prod', fetch });
      const name = otherwise[operation.operationId] ?? operation.operationId;
      const call = (client as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>)[name];
      assert.ok(call, `there is no method ${name}; run make generate`);
      const ids = [...path.matchAll(/\{(\w+)\}/g)].map((found) => `an id/of ${found[1]}`);
      const rest = given[operation.operationId] ?? (method === 'get' || method === 'delete' ? [] : [{}]);
      await call.call(client, ...ids, ...rest);
      const wanted = path.replace(/\{(\w+)\}/g, (_, id: string) => encodeURIComponent(`an id/of ${id}`));
      assert.equal(seen.length, 1);
      const one = seen[0]!;
      assert.equal(`${one.method} ${one.url.pathname}`, `${method.toUpperCase()} ${wanted}`);
      const known = (operation.parameters ?? []).filter((p) => p.in === 'query').map((p) => p.name);
      for (const key of one.url.searchParams.keys()) assert.ok(known.includes(key), `${key} is no parameter`);
      const isControl = (operation.security ?? []).some((kinds) => 'controlToken' in kinds);
      const token = isControl ? 'tok' : rest.find((argument) => typeof argument === 'string');
      assert.equal(one.headers['Authorization'], token && `Bearer ${String(token)}`);
      if (isControl) assert.equal(one.url.searchParams.get('tenantId'), 'acme');
      assert.equal(one.body !== undefined, operation.requestBody !== undefined);
      assert.match(one.headers['User-Agent']!, /^lubdub-typescript\/\d/);
      assert.equal(one.redirect, 'manual');
      assert.equal(one.headers['Content-Type'], one.body === undefined ? undefined : 'application/json');
      // Its options are the last argument: wherever the call expects them, an ended signal ends it, and nothing is sent.
      const signal = AbortSignal.abort(new Error('enough'));
      const ends = async (...before: unknown[]) => {
        const count = seen.length;
        const error = await call.call(client, ...before, { signal }).catch((reason: unknown) => reason);
        return error === signal.reason && seen.length === count;
      };
      const all = [...ids, ...rest];
      assert.ok((await ends(...all)) || (await ends(...all, undefined)) || (await ends(...ids)), 'it takes no signal');
      client.close();
    });

    if (method === 'get' && path.startsWith('/v1/')) {
      test(`${operation.operationId} has the client's scope with another token, too`, async () => {
        const { seen, fetch } = carrier(() => answer(200, {}));
        const client = new Client('http://127.0.0.1:1', { token: 'tok', tenantId: 'acme', workspaceId: 'prod', fetch });
        const call = (client as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>)[operation.operationId]!;
        const ids = [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]!);
        await call.call(client, ...ids, { token: 'other' });
        await call.call(client, ...ids, undefined, { token: 'other' }); // after a query
        const other = seen.filter((one) => one.headers['Authorization'] === 'Bearer other');
        assert.ok(other.length > 0);
        for (const one of other) assert.equal(one.url.searchParams.get('tenantId'), 'acme');
        client.close();
      });
    }

    const { 'x-idempotent': isIdempotent, 'x-idempotent-by': field } = operation;
    if (isIdempotent === false || field) {
      test(`a lost answer of ${operation.operationId} is ${field ? '' : 'not '}requested again`, async () => {
        const { seen, fetch } = carrier(() => {
          throw Object.assign(new Error('the connection was cut'), { code: 'ECONNRESET' });
        });
        const client = new Client('http://127.0.0.1:1', { token: 'tok', fetch, tries: 2 });
        const call = (client as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>)[operation.operationId]!;
        const ids = [...path.matchAll(/\{(\w+)\}/g)].map(() => 'id');
        await assert.rejects(call.call(client, ...ids, ...(given[operation.operationId] ?? [{}])));
        assert.equal(seen.length, field ? 2 : 1);
        const [first, second] = seen.map((one) => (JSON.parse(one.body ?? '{}') as Record<string, unknown>)[field ?? '']);
        assert.ok(!field || (first && first === second), `${field}: ${String(first)}, ${String(second)}`);
        client.close();
      });
    }
  }
}
