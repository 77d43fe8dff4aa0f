-- Purpose: reads what is due for webhooks in some shards, and decides which sweeper handles it.
-- Guarantees: one sweeper has a shard's webhooks until its lease ends; another may take them then, after it has left those
--   before it their time.
-- KEYS: for each shard 1 lubdub:{shard}:eventmarks, 2 …:sweepers, 3 …:hookdue. On Cluster a call covers one shard only
-- ARGV: 1 sweeper, 2 lease on a shard, ms, 3 ms after which a silent sweeper does not count, 4 limit of webhooks to name, then
--   for each shard for how many ms it must have had no sweeper, or '' if it is not to be taken or kept
-- Reply: wall ms, then for each shard {1 if this sweeper has it, else 0, 1 if events are taken, else 0, entry that was taken
--   last, its mark, version of the webhooks, {live sweepers}, {webhooks with something due}}
-- Cost: O(shards + sweepers + due webhooks), at most 1,000 a shard
--#include lib/clock.lua
--#include lib/digits.lua
local who, lease, window, most = unpack(ARGV, 1, 4)
local reply = {now}
for i = 1, #KEYS, 3 do
  local wait = ARGV[5 + (i - 1) / 3]
  local f = redis.call('HMGET', KEYS[i], 'taken', 'mark', 'version', 'leader', 'until')
  local till = tonumber(f[5] or 0)
  if till > now + lease then till = 0 end -- the clock was set back
  local mine = f[4] == who and till >= now
  if wait ~= '' and (mine or now >= till + wait) then
    mine = true
    redis.call('HSET', KEYS[i], 'leader', who, 'until', digits(now + lease))
  end
  local live = redis.call('ZRANGEBYSCORE', KEYS[i + 1], '(' .. digits(now - window), '(9007199254740991')
  local due = mine and redis.call('ZRANGEBYSCORE', KEYS[i + 2], '-inf', NOW, 'LIMIT', 0, tonumber(most)) or {}
  reply[#reply + 1] = {mine and 1 or 0, f[1] and 1 or 0, f[1] or '', f[2] or '', f[3] or '', live, due}
end
return reply
