import assert from 'node:assert/strict';
import test from 'node:test';
import { StoppedError } from 'lubdub';
import { copyOf, errorOf } from '../dist/copies.js';

test('a copied error keeps its cause, though that is also one of its fields, and its own fields', () => {
  const error = Object.assign(new Error('no'), { cause: new RangeError('why'), code: 'E', message: 'yes' });
  const copy = errorOf(structuredClone(copyOf(error))) as typeof error;
  assert.deepEqual([copy.message, copy.code, copy.cause.name, copy.cause.message], ['yes', 'E', 'RangeError', 'why']);
  assert.equal(Object.keys(copy).includes('stack'), false);
});

test('copied errors are bounded: long texts are cut, and long fields and those that throw are left out', () => {
  const long = 'é'.repeat(1e6);
  const error = Object.assign(new Error(long), { long, code: 'E' });
  Object.defineProperty(error, 'throws', {
    enumerable: true,
    get() {
      throw new Error('no');
    },
  });
  const copy = copyOf(error);
  assert.deepEqual(copy.fields, { code: 'E' });
  assert.deepEqual([Buffer.byteLength(copy.message), Buffer.byteLength(copy.stack!)], [16_384, 16_383]);
  assert.equal(copyOf(long).message.length, 8192);
  const partial = 'x'.repeat(100_000);
  assert.equal((errorOf(copyOf(new StoppedError('late', partial))) as StoppedError).partial, partial);
});
