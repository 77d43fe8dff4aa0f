-- Purpose: stores a heartbeat of a worker, which also counts for every task it holds without its own timeout.
-- Guarantees: one write of liveness however many tasks it holds; for an OFFLINE worker the reply says so and nothing is
--   written; totals are added once for each seq; an inventory of more than the worker may hold is refused and nothing is
--   written; a worker whose drain ended before a heartbeat reported it gets one reply as draining; inventories are numbered in
--   the order of arrival.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:workerbeats, 3 …:worker:<scope>/<id>, 4 …:notices:<scope>/<id>, 5 …:workers,
--   6 …:events
-- ARGV: 1 scope, 2 id, 3 active or '', 4 seq or '', 5 completed, 6 failed, 7 interval ms, 8 timeout multiplier, 9 how many
--   attempts its inventory lists, or '' without an inventory, 10 how many more than it may hold these may be
-- Reply: {OK, wall ms, status (F: it has ended, and this reports its drain), drain deadline wall ms or '', interval ms,
--   timeout ms, {notices for it}, number of the heartbeat among those with an inventory, or '' if it has none or one that is
--   older than the last, ms since its last heartbeat and its timeout until now, '' if it has ended or no heartbeat is
--   recorded} or {OFFLINE, wall ms, reason} or {NOT_FOUND, wall ms}
-- Cost: O(log n), whatever the worker holds; one event when the worker was late
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
--#include lib/fresh.lua
local key, name = KEYS[3], ARGV[1] .. '/' .. ARGV[2]
local f = redis.call('HMGET', key, 's', 'i', 't', 'sq', 'dd', 'dt', 'la', 'pb', 'r', 'bn', 'hb', 'mc', 'bl')
local status, interval, timeout = f[1], tonumber(f[2]), tonumber(f[3])
if not status then return {NOT_FOUND, now} end
if status == 'F' then
  if f[9] ~= 'DRAINED' or f[6] then return {OFFLINE, now, f[9] or ''} end
  redis.call('HSET', key, 'dt', 1)
  return {OK, now, 'F', f[5] or '', interval, timeout, {}, '', '', ''}
end
if ARGV[9] ~= '' and tonumber(ARGV[9]) > (f[12] or 0) + ARGV[10] then return {REFUSED, now, f[12] or 0} end
-- The first notices for the worker, as many as one response may include; the others follow after these are delivered.
local function notices(key)
  local found, bytes = {}, 0
  while #found < 500 and bytes < 131072 do
    local some = redis.call('ZRANGE', key, #found, #found + 49)
    for _, entry in ipairs(some) do
      found[#found + 1] = entry
      bytes = bytes + #entry
    end
    if #some < 50 then break end
  end
  return found
end

local L, limit = shard_time(KEYS[1]), timeout
local record = {'bl', L, 'lb', now}
local function set(field, value)
  record[#record + 1] = field
  record[#record + 1] = value
end
-- A shorter interval comes in steps of a half: a worker that did not get the response still beats within the new timeout.
local wanted = math.max(tonumber(ARGV[7]), math.ceil(interval / 2))
if wanted ~= interval then
  interval = wanted
  timeout = interval * ARGV[8]
  set('i', interval)
  set('t', timeout)
end
if ARGV[3] ~= '' then
  set('a', ARGV[3])
  set('ae', math.max(0, ARGV[3] - (tonumber(f[11]) or 0))) -- what it cannot have claimed
end
if status == 'D' and not f[6] then set('dt', 1) end
local fresh = ARGV[4] == '' or tonumber(ARGV[4]) > (tonumber(f[4]) or -1)
if ARGV[4] ~= '' and fresh then
  set('sq', ARGV[4])
  if ARGV[5] ~= '0' then redis.call('HINCRBY', key, 'tc', ARGV[5]) end
  if ARGV[6] ~= '0' then redis.call('HINCRBY', key, 'tf', ARGV[6]) end
end
local number = ''
if ARGV[9] ~= '' and fresh then
  number = (tonumber(f[10]) or 0) + 1
  set('bn', number)
end
redis.call('HSET', key, unpack(record))
if f[7] or f[8] then
  end_lateness(key, KEYS[5], KEYS[6], name, f[13] and L - f[13])
end
redis.call('ZADD', KEYS[2], L + math.floor(1.5 * interval), name)
return {OK, now, status, f[5] or '', interval, timeout,
  notices(KEYS[4]), number, f[13] and string.format('%.0f', L - f[13]) or '', limit}
