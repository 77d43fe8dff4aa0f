-- Purpose: reads schedules of one shard, and the requested parts of their tasks.
-- Guarantees: writes nothing.
-- KEYS: for each schedule lubdub:{shard}:schedule:<scope>/<id>, …:scheduletask:<scope>/<id>, …:pending:<scope>/<id>,
--   …:fired:<scope>/<id>
-- ARGV: 1 limit of waiting fires of each, 2 part of their tasks: whole, short (without payload and resources) or '' for
--   nothing
-- Reply: wall ms, then for each schedule {{fields and values; none: the schedule does not exist}, {waiting fires}, number of
--   waiting fires, {handled fires, latest first}, {task, payload, resources}}
-- Cost: O(fields + limit) for each; at most 25 a call, 1 with whole
--#include lib/clock.lua
local KEYS_PER_SCHEDULE = 4
local PARTS = {whole = {'task', 'payload', 'resources'}, short = {'task'}}
local reply, parts = {now}, PARTS[ARGV[2]]
for k = 1, #KEYS, KEYS_PER_SCHEDULE do
  local waiting = redis.call('ZRANGE', KEYS[k + 2], 0, ARGV[1] - 1)
  if ARGV[1] == '0' then waiting = {} end
  local texts = {}
  for i, part in ipairs(parts or {}) do texts[i] = redis.call('HGET', KEYS[k + 1], part) or '' end
  reply[#reply + 1] = {redis.call('HGETALL', KEYS[k]), waiting, redis.call('ZCARD', KEYS[k + 2]),
    redis.call('LRANGE', KEYS[k + 3], 0, -1), texts}
end
return reply
