-- Purpose: stores what an idempotency key identifies, before the creation that it guards and again after it.
-- Guarantees: the first reservation counts until it expires; another body is recognized; the time of creation is recorded
--   once, and the worker with it.
-- KEYS: 1 lubdub:{shard}:idem:<scope>/<key>
-- ARGV: 1 hash of the body, 2 task id and 3 fence to reserve, 4 life ms (0: reserve nothing), 5 created wall ms
--   or '', 6 worker that was chosen for it then, or '', 7 traceparent to reserve, or ''
-- Reply: {1 if the body is the same, else 0, task id, fence, created wall ms or '', worker or '', traceparent or ''}; no id if
--   the key is not known and none was reserved
-- Cost: O(1)
local r = redis.call('HMGET', KEYS[1], 'h', 'id', 'f', 'c', 'w', 'tp')
if not r[1] and ARGV[4] == '0' then return {1, '', '', '', '', ''} end
if not r[1] then
  redis.call('HSET', KEYS[1], 'h', ARGV[1], 'id', ARGV[2], 'f', ARGV[3])
  if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'tp', ARGV[7]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  r = {ARGV[1], ARGV[2], ARGV[3], false, false, ARGV[7]}
end
if r[1] ~= ARGV[1] then return {0, r[2], r[3], '', '', ''} end
if ARGV[5] ~= '' and not r[4] then
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'w', ARGV[6])
  r[4], r[5] = ARGV[5], ARGV[6]
end
return {1, r[2], r[3], r[4] or '', r[5] or '', r[6] or ''}
