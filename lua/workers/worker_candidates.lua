-- Purpose: reads of many workers only what a selection asks for.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:worker:<scope>/<id> of each worker
-- ARGV: 1 queue that they must work for, or '', then the fields to read
-- Reply: {wall ms, for each worker silent ms or '' and those fields, TAB-separated, or '' for one that is gone or works
--   for another queue}
-- Cost: O(workers)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local queue = ARGV[1]
local reply = {now}
for i = 2, #KEYS do
  local f = redis.call('HMGET', KEYS[i], 'q', 'bl', unpack(ARGV, 2))
  local packed = ''
  if f[1] and (queue == '' or f[1] == queue) then
    for j = 3, #ARGV + 1 do f[j] = f[j] or '' end
    packed = (f[2] and string.format('%.0f', L - f[2]) or '') .. '\t' .. table.concat(f, '\t', 3, #ARGV + 1)
  end
  reply[i] = packed
end
return reply
