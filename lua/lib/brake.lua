-- Purpose: the entries of the mass-expiry brake in a shard, in one sorted set with their ends in shard time as scores:
--   h:<timeout ms>:<attempt> and w:<worker> are held, r:<scope> was released by an operator, e:<scope> was reported as held.
--   Needs clock.
local BRAKED = KEYS[2]
local L = shard_time(KEYS[1])
local FORGET = 100 -- expired entries to remove in a call

local over = redis.call('ZRANGEBYSCORE', BRAKED, '-inf', '(' .. string.format('%.0f', L), 'LIMIT', 0, FORGET)
if #over > 0 then redis.call('ZREM', BRAKED, unpack(over)) end

-- Reports whether an entry is in force.
local function in_force(entry) return (tonumber(redis.call('ZSCORE', BRAKED, entry)) or 0) > L end

local function record_until(entry, at) redis.call('ZADD', BRAKED, string.format('%.0f', at), entry) end
