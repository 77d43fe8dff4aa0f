-- Purpose: drains a machine, holds it offline, or undoes both: a worker that registers on a drained one claims nothing, and
--   registrations on one that is held are refused.
-- Guarantees: repeating it changes nothing but the deadline and the reason; its workers are drained, ended and resumed one by
--   one afterwards (worker_status.lua). A machine without workers is kept only while it is drained or held.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8 lubdub:{shard}:machine:<scope>/<machine>,
--   9 …:machineworkers:<scope>/<machine>, 10 …:machineperiods:<scope>/<machine>, 11 …:stales:<scope>/m:<machine>
-- ARGV: 1 scope, 2 machine, 3 drain, retire or resume, 4 deadline in ms from now or '', 5 reason from the request, or '', 6
--   the same as JSON, null for none
-- Reply: {OK, wall ms} or {REPEATED, wall ms} or {NOT_FOUND, wall ms}
-- Cost: O(log n), at most one event
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/worker.lua
local machine, members = KEYS[8], KEYS[9]
local scope, id, empty = ARGV[1], ARGV[2], 'm:' .. ARGV[1] .. '/' .. ARGV[2]
local f = redis.call('HMGET', machine, 's', 'ds', 'dd', 'ho')
local none = {scope = scope, f = {m = id}} -- no particular worker of it
if not f[1] then return {NOT_FOUND, now} end
if ARGV[3] == 'resume' then
  if not f[2] and not f[4] then return {REPEATED, now} end
  redis.call('ZREM', WORKERDUE, empty)
  redis.call('HDEL', machine, 'ds', 'dd', 'dr', 'ho', 'hr')
  redis.call('HSET', machine, 'rs', now)
  emit_machine(none, 'machine.resumed', '{"reason":' .. ARGV[6] .. '}')
  if redis.call('ZCARD', members) == 0 then
    redis.call('DEL', machine, KEYS[10], KEYS[11])
    forget_machine(scope, id)
  end
  return {OK, now}
end
if ARGV[3] == 'retire' then
  if ARGV[5] ~= '' then redis.call('HSET', machine, 'hr', ARGV[5]) end
  if f[4] then return {REPEATED, now} end
  redis.call('HSET', machine, 'ho', now)
  emit_machine(none, 'machine.held_offline', '{"reason":' .. ARGV[6] .. '}')
  return {OK, now}
end
local deadline = ARGV[4] ~= '' and string.format('%.0f', now + ARGV[4]) or nil
if deadline then redis.call('HSET', machine, 'dd', deadline) end
if ARGV[5] ~= '' then redis.call('HSET', machine, 'dr', ARGV[5]) end
if f[2] then return {REPEATED, now} end
redis.call('HSET', machine, 'ds', now)
emit_machine(none, 'machine.drained', '{"deadlineMs":' .. (deadline or 'null') .. ',"reason":' .. ARGV[6] .. '}')
return {OK, now}
