-- Purpose: records the due fires of a schedule and advances its last fire, in one step. Their tasks are created afterwards,
--   each by the key of its fire, so a sweeper that dies in between loses none and creates none twice.
-- Guarantees: only if the version and the last fire are those that were read; of two sweepers one records. No more than the
--   latest fires that are to be caught up wait for their tasks; the others are counted as skipped. A requested fire of the
--   same time that waits or has got its task is the same fire.
-- KEYS: 1 lubdub:{shard}:scheduledue, 2 …:schedule:<scope>/<id>, 3 …:pending:<scope>/<id>,
--   4 …:fired:<scope>/<id>
-- ARGV: 1 name, 2 version that was read, 3 last fire that was read, wall ms, 4 new last fire, wall ms, 5 next examination,
--   wall ms, '' for never, 6 fires that are skipped, 7 limit of waiting fires in the reply, then the fires, wall ms in 13
--   digits, oldest first
-- Reply: {OK, fires that were skipped, {waiting fires, oldest first}}, {NOT_FOUND}, or {MISMATCH} if another sweeper was
--   faster
-- Cost: O(fires log n), at most 250 of them; O(waiting fires) if more wait than are to be caught up
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/schedule.lua
local name, version, was, last, next, skipped = unpack(ARGV, 1, 6)
local f = open_schedule(KEYS[2])
if not f then
  redis.call('ZREM', KEYS[1], name)
  return {NOT_FOUND}
end
if f.v ~= version or f.l ~= was or f.p then return {MISMATCH} end
local known = fire_lookup(KEYS[3], KEYS[4])
for i = 8, #ARGV do
  if not known(ARGV[i]) then redis.call('ZADD', KEYS[3], '0', ARGV[i] .. '/s') end
end
local most = math.max(tonumber(f.m), 1)
if redis.call('ZCARD', KEYS[3]) > most then
  local waiting = {}
  for _, fire in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if string.sub(fire, -2) == '/s' and string.sub(fire, 1, -3) ~= f.dc then waiting[#waiting + 1] = fire end
  end
  for i = 1, #waiting - most do
    redis.call('ZREM', KEYS[3], waiting[i])
    skipped = skipped + 1
  end
end
redis.call('HSET', KEYS[2], 'l', last)
if not f.ns then redis.call('HSET', KEYS[2], 'ns', NOW) end
if next == '' then redis.call('HSET', KEYS[2], 'e', '1') end
if tonumber(skipped) > 0 then
  redis.call('HINCRBY', KEYS[2], 'sk', skipped)
  redis.call('HINCRBY', KEYS[2], 'su', skipped)
end
local since = tonumber(redis.call('ZSCORE', KEYS[1], name)) or now -- the one that has been due longest comes first
schedule_check(KEYS[1], KEYS[3], name, next, digits(math.min(since, now)))
return {OK, tonumber(skipped), redis.call('ZRANGE', KEYS[3], 0, ARGV[7] - 1)}
