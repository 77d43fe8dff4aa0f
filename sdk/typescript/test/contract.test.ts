import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Client } from 'lubdub';
import { answer, carrier } from './helpers.js';

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string }[];
}

const contract = JSON.parse(readFileSync(new URL('../../../api/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};

const otherwise: Record<string, string> = { version: 'serverVersion', openapi: 'openApi' };

// Arguments after the ids of the path, if a call has no body or more than a body.
const given: Record<string, unknown[]> = {
  claimTasks: ['wtok', { max: 1 }],
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
      const scoped = one.headers['Authorization'] === 'Bearer tok';
      if (scoped && known.includes('tenantId')) assert.equal(one.url.searchParams.get('tenantId'), 'acme');
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
  }
}
