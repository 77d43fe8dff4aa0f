-- Purpose: counts what workers hold in a shard, and what waits there for them alone.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:held, 2 …:ready
-- ARGV: for each worker its id and the prefix of what is pinned to it, <scope>/<queue>/<id>, or '' for none
-- Reply: for each worker how many attempts it holds and how many tasks wait for it
-- Cost: O(workers × log n)
local reply = {}
local function count(key, prefix) return redis.call('ZLEXCOUNT', key, '[' .. prefix .. '/', '(' .. prefix .. '0') end
for i = 1, #ARGV, 2 do
  reply[i] = count(KEYS[1], ARGV[i])
  reply[i + 1] = ARGV[i + 1] ~= '' and count(KEYS[2], ARGV[i + 1]) or 0
end
return reply
