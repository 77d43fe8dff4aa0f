-- Purpose: what the mass expiry brake remembers of a shard, in one sorted set whose scores say until when in shard
-- time: h:<timeout ms>:<attempt> and w:<worker> are spared, r:<scope> was released by an operator, e:<scope> was told of
-- as spared. Needs clock.
local BRAKED = KEYS[2]
local L = shard_time(KEYS[1])
local FORGET = 100 -- entries that are over, a call

local over = redis.call('ZRANGEBYSCORE', BRAKED, '-inf', '(' .. string.format('%.0f', L), 'LIMIT', 0, FORGET)
if #over > 0 then redis.call('ZREM', BRAKED, unpack(over)) end

-- Reports whether an entry still stands.
local function stands(entry) return (tonumber(redis.call('ZSCORE', BRAKED, entry)) or 0) > L end

local function remember_until(entry, at) redis.call('ZADD', BRAKED, string.format('%.0f', at), entry) end
