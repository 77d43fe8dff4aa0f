-- Purpose: checks due workers: late ones are reported, those silent for their timeout end.
-- Guarantees: silence is checked again against shard time, so a heartbeat that came in between wins; two sweepers cannot take
--   the same one; the verdict, the machine's status, the events and the entry of the recovery are one step. A worker without a
--   recorded heartbeat is stale.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8 lubdub:{shard}:flapping, then for each worker the ten of
--   worker_register.lua
-- ARGV: 1 sweeper, 2 retention ms, 3 shards, 4 1 if late workers are probed, else '', 5 how many stale verdicts within a day
--   are flapping, then for each worker its scope, its id and 1 if it may end by this call, else ''
-- Reply: for each worker 0 (nothing to do), 1 (late now) or 2 (stale), the lag in ms, its machine, for a late one its probe
--   URL, its last heartbeat, wall ms, or '', for a stale one what flaps: w it, m its machine, wm both, and its queue
-- Cost: O(log n + shards) for each; at most 25 a call
--#include lib/clock.lua
--#include lib/worker.lua
local L = shard_time(CLOCK)
read_change(CLOCK)
local sweeper, retention, shards, probing = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
actor = sweeper
local FLAPPING, threshold = KEYS[8], tonumber(ARGV[5])
local MAX_PROBES = 3 -- responses in a row without a heartbeat; after them its silence ends the worker
local reply = {}
for n = 1, (#ARGV - 5) / 3 do
  local w = open_worker(9 + KEYS_PER_WORKER * (n - 1), ARGV[3 * n + 3], ARGV[3 * n + 4])
  local may_end = ARGV[3 * n + 5] == '1'
  local f, result, lag, url, flapping = w.f, 0, 0, '', ''
  local score = tonumber(redis.call('ZSCORE', WORKERBEATS, w.name))
  if not f or f.s == 'F' then
    redis.call('ZREM', WORKERBEATS, w.name)
    if not f then -- the store lost its record
      for _, s in ipairs({'N', 'D', 'F'}) do redis.call('ZREM', WORKERS, w.scope .. '/' .. s .. '/' .. w.id) end
    end
  elseif not score or score <= L then
    local beat = tonumber(f.bl)
    local silent = beat and L - silent_from(f)
    local probe = probing and f.u and (tonumber(f.pb) or 0) < MAX_PROBES
    local over = not silent or silent >= tonumber(f.t) and (f.la or not probe)
    if over and may_end then
      if silent then lag = silent - f.t end
      local flaps = note_stale(w, w.stales, threshold, FLAPPING, 'w/' .. w.scope .. '/' .. (f.ln or w.id))
      if flaps then
        emit(w, 'worker.flapping', flaps)
        flapping = 'w'
      end
      local machine = retire(w, {reason = 'HEARTBEAT_TIMEOUT', loss = true, shards = shards, retention = retention,
        ended = beat and tonumber(f.lb), lag = lag,
        data = ',"silentMs":' .. (beat and string.format('%.0f', L - beat) or 'null') .. ',"timeoutMs":' .. f.t
          .. ',"detectionLagMs":' .. string.format('%.0f', lag) .. ',"detectedAtMs":' .. string.format('%.0f', now)
          .. ',"sweeper":"' .. sweeper .. '"' .. (was_held_by_brake(f) and ',"massExpiryHeld":true' or '')})
      local machine_flaps = machine == 'F'
        and note_stale(w, w.machine_stales, threshold, FLAPPING, 'm/' .. w.scope .. '/' .. f.m)
      if machine_flaps then
        emit_machine(w, 'machine.flapping', machine_flaps)
        flapping = flapping .. 'm'
      end
      result = 2
    elseif over then -- since the brake decided: the next sweep consults it again
    elseif 2 * silent >= 3 * f.i and not f.la then
      f.la = now
      redis.call('ZREM', WORKERBEATS, w.name) -- first: above maxmemory Redis refuses a script that does not free first
      redis.call('HSET', w.key, 'la', now)
      redis.call('ZADD', WORKERBEATS, next_check(f), w.name)
      redis.call('ZADD', WORKERS, 0, '|' .. w.name)
      if not f.px then
        emit(w, 'worker.late', '{"silentMs":' .. string.format('%.0f', silent) .. '}')
      end
      result, url = 1, probe and f.u or ''
    else
      redis.call('ZREM', WORKERBEATS, w.name)
      redis.call('ZADD', WORKERBEATS, next_check(f), w.name)
    end
  end
  reply[#reply + 1] = result
  reply[#reply + 1] = lag
  reply[#reply + 1] = f and f.m or ''
  reply[#reply + 1] = url
  reply[#reply + 1] = f and f.lb or ''
  reply[#reply + 1] = flapping
  reply[#reply + 1] = f and f.q or ''
end
return reply
