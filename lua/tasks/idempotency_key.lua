-- Purpose: stores what an idempotency key identifies, before the creation that it guards and again after it.
-- Guarantees: the first reservation counts until it expires; another body is recognized; the time of creation is recorded
--   once, and the worker with it.
-- KEYS: 1 lubdub:{shard}:idem:<scope>/<key>
-- ARGV: 1 hash of the body, 2 task id and 3 fence to reserve, 4 life ms (0: reserve nothing), 5 created wall ms
--   or '', 6 worker that was chosen for it then, or '', 7 traceparent to reserve, or ''
-- Reply: {1 if the body is the same, else 0, task id, fence, created wall ms or '', worker or '', traceparent or ''}; no id if
--   the key is not known and none was reserved
-- Cost: O(1)
--#include lib/idempotency.lua
local known = known_key(KEYS[1], ARGV[1])
if not known and ARGV[4] == '0' then return {1, '', '', '', '', ''} end
if not known then
  reserve_key(KEYS[1], ARGV[4], ARGV[7], 'h', ARGV[1], 'id', ARGV[2], 'f', ARGV[3])
  known = {1, ARGV[2], ARGV[3], '', '', ARGV[7]}
end
if known[1] == 1 and known[4] == '' and ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'c', ARGV[5], 'w', ARGV[6])
  known[4], known[5] = ARGV[5], ARGV[6]
end
return known
