-- Purpose: reads of many workers only what a selection asks for.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:worker:<scope>/<id> of each worker
-- ARGV: 1 queue that they must work for, or '', then the fields to read
-- Reply: {wall ms, shard ms, for each worker its last beat in shard ms or '' and those fields, TAB-separated, or '' for one
--   that is gone or works for another queue}
-- Cost: O(workers)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local queue, call, concat = ARGV[1], redis.call, table.concat
local reply, last = {now, L}, #ARGV
for i = 2, #KEYS do
  local row = ''
  if queue == '' or call('HGET', KEYS[i], 'q') == queue then
    local f = call('HMGET', KEYS[i], 'bl', unpack(ARGV, 2))
    for j = 1, last do f[j] = f[j] or '' end
    row = concat(f, '\t')
  end
  reply[i + 1] = row
end
return reply
