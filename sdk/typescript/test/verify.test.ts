import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import test from 'node:test';
import { UsageError, verifyWebhook, WebhookError } from 'lubdub';

// The secret and the message of the standard's own example.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const known = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const body = '{"test": 2432232314}';
const now = () => 1614265330_000;

test("a webhook's signature matches the standard's example", () => {
  assert.equal(verifyWebhook(secret, known, body, { now }).id, known['webhook-id']);
  assert.equal(verifyWebhook([secret], new Headers(known), Buffer.from(body), { now }).id, known['webhook-id']);
  const rotated = { ...known, 'webhook-signature': `v1a,x v1,AAAA ${known['webhook-signature']}` };
  assert.equal(verifyWebhook(['whsec_' + Buffer.alloc(32).toString('base64'), secret], rotated, body, { now }).id, known['webhook-id']);
});

test('messages with a wrong signature or an old timestamp are rejected', () => {
  const refused = (why: string, headers: Record<string, string>, text = body, at = now) =>
    assert.throws(
      () => verifyWebhook(secret, headers, text, { now: at }),
      (e) => e instanceof WebhookError && e.why === why,
    );
  refused('signature', known, body + ' ');
  refused('signature', { ...known, 'webhook-id': 'msg_other' });
  refused('signature', { ...known, 'webhook-signature': 'v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' });
  refused('timestamp', known, body, () => now() + 300_001);
  refused('timestamp', known, body, () => now() - 300_001);
  refused('headers', { ...known, 'webhook-timestamp': '1e9' });
  refused('headers', { 'webhook-id': 'x' });
  const signature =
    'v1,' +
    createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update('a.1614265330.{')
      .digest('base64');
  refused('body', { ...known, 'webhook-id': 'a', 'webhook-signature': signature }, '{');
  assert.throws(() => verifyWebhook('whsec_c2hvcnQ=', known, body), UsageError);
  assert.throws(() => verifyWebhook([], known, body), UsageError);
});
