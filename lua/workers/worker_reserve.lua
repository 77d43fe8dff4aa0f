-- Purpose: reserves places for a claim of a worker, or ends a reservation when its claim is over.
-- Guarantees: only an ONLINE worker that is neither LOST nor cordoned gets any, and never more than its maxConcurrent leaves:
--   the recorded number of what it holds is never too low, since claims add to it and only a count lowers it. Places that
--   other claims have reserved are not given twice. A reservation that is not ended expires and counts as used. A new claim
--   counts as a heartbeat, so no claiming worker is LOST; a waiting one does not.
-- KEYS: 1 lubdub:{shard}:worker:<scope>/<id>, 2 …:reserved:<scope>/<id>, 3 …:clock, 4 …:workerbeats, 5 …:workers,
--   6 …:events
-- ARGV: 1 name of the reservation, 2 how many are wanted (-1: end it), 3 life ms, 4 ending: how many were claimed; reserving:
--   how many it holds, as counted, or '', 5 the reply's number when that count began, or '', 6 the worker as workerbeats names
--   it if its claim is new, else ''
-- Reply: {code, wall ms, granted, max concurrent, queue, machine, types, runtimes, labels as JSON, reason, number that rises
--   with each reservation that ends, 1 if the worker is LOST, else 0, 1 if it is cordoned, else 0}
-- Cost: O(reservations of the worker + log n); one event when the worker was late
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
--#include lib/reservation.lua
--#include lib/fresh.lua
local f = redis.call('HMGET', KEYS[1], 's', 'mc', 'q', 'm', 'y', 'rn', 'l', 'r', 'hb', 'hg', 'dt',
  'i', 't', 'bl', 'px', 'br', 'la', 'pb', 'co')
local status, max, held, ended = f[1], tonumber(f[2]), tonumber(f[9]) or 0, tonumber(f[10]) or 0
if not status then return {NOT_FOUND, now} end
local want, others, granted = tonumber(ARGV[2]), 0, 0
local before = held
local entries = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for i = 1, #entries, 2 do
  local name, n = unpack_reservation(entries[i])
  local over = tonumber(entries[i + 1]) <= now
  if name == ARGV[1] or over then
    redis.call('ZREM', KEYS[2], entries[i])
    if over or want < 0 then
      held, ended = held + (name == ARGV[1] and want < 0 and ARGV[4] or n), ended + 1
    end
  else
    others = others + n
  end
end
if want > 0 and ARGV[5] == tostring(ended) then held = tonumber(ARGV[4]) end
-- For a worker that its drain has ended the reply is draining, like that of its next heartbeat.
local drains = status == 'D' or status == 'F' and f[8] == 'DRAINED' and not f[11]
local code = drains and DRAINING or status == 'F' and OFFLINE or OK
local lost = false
if want > 0 and status ~= 'F' then
  local L, beat = shard_time(KEYS[3]), tonumber(f[14])
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'bl', L, 'lb', now)
    if f[17] or f[18] then
      end_lateness(KEYS[1], KEYS[5], KEYS[6], ARGV[6], beat and L - beat)
    end
    redis.call('ZADD', KEYS[4], L + math.floor(1.5 * f[12]), ARGV[6])
  else
    lost = not beat or L - math.max(beat, tonumber(f[15]) or 0, tonumber(f[16]) or 0) >= tonumber(f[13])
  end
end
if code == OK and want > 0 and not lost and not f[19] then
  granted = math.max(0, math.min(want, max - others - held))
  if granted > 0 then
    redis.call('ZADD', KEYS[2], now + ARGV[3], pack_reservation(ARGV[1], granted))
  end
end
if held ~= before or ended ~= (tonumber(f[10]) or 0) then redis.call('HSET', KEYS[1], 'hb', held, 'hg', ended) end
return {code, now, granted, max, f[3], f[4], f[5], f[6] or '', f[7] or '', f[8] or '', ended, lost and 1 or 0,
  f[19] and 1 or 0}
