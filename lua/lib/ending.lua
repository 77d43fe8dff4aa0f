-- Purpose: ends attempts. Needs clock, shard and task.
--#include lib/credit.lua

-- Ends the task: from now on only retention changes it.
local function finish(task, state, reason, retention)
  local f = task.f
  if reason then
    move(task, state, 'e', NOW, 'r', reason)
  else
    move(task, state, 'e', NOW)
    if f.r then redis.call('HDEL', task.key, 'r') end
  end
  f.e = NOW
  if f.n then
    redis.call('HDEL', task.key, 'n')
    write('ZREM', DUE, 'b:' .. task.name)
  end
  if f.pl then write('ZREM', DUE, 'p:' .. task.name) end
  if f.x then write('ZREM', DUE, 'd:' .. task.name) end
  write('ZADD', DUE, digits(now + retention), 'x:' .. task.name)
  if f.aw then wake_awaiting(task) end
end

local RESULT = {'output', 'metrics', 'phase', 'partial', 'error', 'cancelReason'}

-- Returns the size of the result of a task whose size is recorded.
local function result_bytes(task)
  local bytes = 0
  for _, field in ipairs(task.f.z and RESULT or {}) do bytes = bytes + redis.call('HSTRLEN', task.doc, field) end
  return bytes
end

-- Removes the result of the previous attempt: the next one has its own.
local function forget_result(task)
  local bytes = result_bytes(task)
  if bytes > 0 then add_bytes(task, -bytes) end
  redis.call('HDEL', task.doc, unpack(RESULT))
end

-- Counts a failure or a loss. Returns the backoff if the policy allows another attempt; else nil, and true if its attempts are
-- used up.
local function retry_after(task, loss)
  local f = task.f
  if not f.q or not f.p or f.cr then return nil end
  local attempts, losses, initial, multiplier, max = string.match(f.p, '^(%d+):(%d+):(%d+):([%d.]+):(%d+)$')
  local counter = loss and 'nl' or 'nf'
  local count = (tonumber(f[counter]) or 0) + 1
  f[counter], task.counted = count, counter
  if loss and count > tonumber(losses) or not loss and count >= tonumber(attempts) then return nil, true end
  local n = (tonumber(f.nf) or 0) + (tonumber(f.nl) or 0)
  if initial == '0' then return 0 end -- zero stays zero with any multiplier, even infinity
  return math.floor(math.min(tonumber(max), tonumber(initial) * tonumber(multiplier) ^ (n - 1)))
end

-- Returns the task to its queue; the ended attempt stays the current one until the next is dispatched.
local function requeue(task, reason, after)
  local f, at = task.f, digits(now + after)
  if f.pl then unplace(task, at) end -- first: being ready depends on the class, which includes the pin
  if after > 0 then
    f.n = at
    move(task, 'Q', 'r', reason, 'n', at)
    write('ZADD', DUE, at, 'b:' .. task.name)
  else
    move(task, 'Q', 'r', reason)
    if f.n then
      redis.call('HDEL', task.key, 'n')
      write('ZREM', DUE, 'b:' .. task.name)
    end
    make_ready(task)
  end
  emit(task, 'task.retrying', '{"reason":"' .. reason .. '","nextAttemptAtMs":' .. at .. '}')
end

-- Above maxmemory Redis refuses a command that may take memory only if it is the first write of a script. Ending attempts
-- frees memory in the end, and removals past retention must not wait for a verdict that was refused.
local freed = false
local function free_first()
  if not freed then redis.call('ZREM', TIMERS, '') end
  freed = true
end

-- When the attempt sent its last heartbeat, whose shard time is the score: wall ms, its silence and the wall ms that did not
-- count; nothing if there was none.
local function last_heartbeat(task, score, L)
  score = beat_of(task, score)
  if not score then return nil end
  local silent, credit = L - score, outage_credit(score)
  return string.format('%d', now - silent - credit), string.format('%d', silent), digits(credit) -- the first two are mostly unique
end

-- How the history marks a retry: another attempt follows, or the policy allows no more.
local function retry_mark(after, exhausted) return after and '1' or exhausted and 'x' or nil end

-- A verdict of Lubdub about the current attempt. `v`: outcome, reason, timeout ms, lag ms, sweeper, L, retryable, loss,
-- forgiven (ms of its silence that do not count since the primary changed), uncounted (it is retried at once and does not
-- count against the policy); for an attempt lost with its worker, what is known of the worker: worker_reason, last heartbeat
-- wall ms, silent ms, credit ms, held by the brake. Returns 2 if the task was requeued, else 1, and whether that is because
-- its retries are used up.
local function verdict(task, v, retention)
  local f = task.f
  actor = v.sweeper
  free_first()
  write('ZADD', IX, '0', verdict_entry(task, v.reason))
  if v.reason ~= 'WORKER_LOST' then leave_notice(task, 'l', 'task_expired') end
  local score, report = leave(task)
  local last_beat, silent, credit = last_heartbeat(task, score, v.L)
  if silent and v.forgiven then silent, credit = digits(silent - v.forgiven), digits(credit + v.forgiven) end
  local last, held = last_beat, nil
  if v.last then
    last, silent, credit, held = v.last, v.silent, v.credit, v.held
  else
    held = was_held_by_brake(task, score)
  end
  local e = {last = last, silent = silent, timeout = v.timeout, credit = credit or '0', lag = digits(v.lag), sweeper = v.sweeper,
    worker_reason = v.worker_reason, held = held}
  local after, exhausted
  if v.retryable then after, exhausted = retry_after(task, v.loss) end
  if v.uncounted and f.q and not f.cr then after = 0 end
  local data = '{"reason":"' .. v.reason .. '","lastHeartbeatAtMs":' .. (e.last or 'null')
    .. ',"silentMs":' .. (e.silent or 'null') .. ',"timeoutMs":' .. (e.timeout or 'null')
    .. ',"outageCreditMs":' .. e.credit .. ',"detectionLagMs":' .. e.lag
    .. ',"detectedAtMs":' .. NOW .. ',"sweeper":"' .. v.sweeper .. '"'
    .. (v.worker_reason and ',"workerReason":"' .. v.worker_reason .. '"' or '')
    .. (e.held and ',"massExpiryHeld":true' or '') .. (exhausted and ',"retriesExhausted":true' or '') .. '}'
  if f.a > 0 and f.s ~= 'Q' then
    append_history(task, report, {outcome = v.outcome, reason = v.reason, retry = retry_mark(after, exhausted),
      last_beat = last_beat, e = e})
  end
  if f.s == 'Q' then forget_result(task) end -- the error of the attempt that failed before does not belong to this verdict
  if v.outcome == 'ZOMBIE' then emit(task, 'task.zombie', data) end
  if after then
    requeue(task, v.reason, after)
    return 2
  end
  finish(task, 'F', v.reason, retention)
  emit(task, 'task.failed', data)
  return 1, exhausted
end
