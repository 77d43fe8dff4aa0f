-- Purpose: cordons a worker, so that it takes no new tasks, or uncordons it.
-- Guarantees: repeating it changes nothing, and the first reason counts; the worker's status does not change, so it continues
--   with what it holds and does not end when it is idle; an OFFLINE worker is left unchanged.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8–17 the worker's, as worker_register.lua has them
-- ARGV: 1 scope, 2 id, 3 1 to cordon it, '' to uncordon it, 4 reason from the request as JSON string, null for none
-- Reply: {OK, wall ms} or {REPEATED, wall ms} or {OFFLINE, wall ms, reason} or {NOT_FOUND, wall ms}
-- Cost: O(log n), at most one event
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
--#include lib/worker.lua
local w = open_worker(8, ARGV[1], ARGV[2])
local f = w.f
if not f then return {NOT_FOUND, now} end
if f.s == 'F' then return {OFFLINE, now, f.r or ''} end
if (f.co ~= nil) == (ARGV[3] == '1') then return {REPEATED, now} end
if ARGV[3] == '1' then
  cordon(w, ARGV[4], '{"reason":' .. ARGV[4] .. '}')
else
  set_cordon(w, nil)
  emit(w, 'worker.uncordoned', '{"reason":' .. ARGV[4] .. '}')
end
wake_worker(w.name) -- waiting claims may get something now, or nothing more
return {OK, now}
