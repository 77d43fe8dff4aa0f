-- Purpose: ends attempts. Needs clock, shard and task.
--#include lib/credit.lua

-- Ends the task itself: nothing but retention may touch it from here.
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
end

local RESULT = {'output', 'metrics', 'phase', 'partial', 'error', 'cancelReason'}

-- What the result takes of a task whose size is known.
local function result_bytes(task)
  local bytes = 0
  for _, field in ipairs(task.f.z and RESULT or {}) do bytes = bytes + redis.call('HSTRLEN', task.doc, field) end
  return bytes
end

-- Forgets what the attempt before said at its end: the next one has a result of its own.
local function forget_result(task)
  local bytes = result_bytes(task)
  if bytes > 0 then weigh(task, -bytes) end
  redis.call('HDEL', task.doc, unpack(RESULT))
end

-- Returns whether the policy allows one more attempt after a failure or a loss, counting it, and after which backoff; or
-- nil, and true when it has allowed all that it does.
local function retry_after(task, loss)
  local f = task.f
  if not f.q or not f.p or f.cr then return nil end
  local attempts, losses, initial, multiplier, max = string.match(f.p, '^(%d+):(%d+):(%d+):([%d.]+):(%d+)$')
  local counter = loss and 'nl' or 'nf'
  local count = (tonumber(f[counter]) or 0) + 1
  f[counter], task.counted = count, counter
  if loss and count > tonumber(losses) or not loss and count >= tonumber(attempts) then return nil, true end
  local n = (tonumber(f.nf) or 0) + (tonumber(f.nl) or 0)
  if initial == '0' then return 0 end -- whatever it is multiplied by, infinity too
  return math.floor(math.min(tonumber(max), tonumber(initial) * tonumber(multiplier) ^ (n - 1)))
end

-- Puts the task back into its queue; the ended attempt stays the current one until the next is dispatched.
local function requeue(task, reason, after)
  local f, at = task.f, digits(now + after)
  if f.pl then unplace(task, at) end -- first: being ready is told by class, and the pin is a part of that
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

-- Above maxmemory Redis refuses a command that may take memory only as the first with which a script writes. What ends
-- attempts frees in the end, and nothing past its retention may wait behind a verdict that was refused.
local freed = false
local function free_first()
  if not freed then redis.call('ZREM', TIMERS, '') end
  freed = true
end

-- When the attempt was last heard, of which the score tells in shard time: wall ms, its silence and the wall ms that
-- did not count; nothing when it was not.
local function heard_at(task, score, L)
  score = beat_of(task, score)
  if not score then return nil end
  local silent, credit = L - score, outage_credit(score)
  return string.format('%d', now - silent - credit), string.format('%d', silent), digits(credit) -- two of which no other has
end

-- How the history tells of a retry: after which backoff it follows, or that the policy allows no more.
local function retry_mark(after, exhausted) return after and '1' or exhausted and 'x' or nil end

-- A verdict of Lubdub's own about the current attempt. `v`: outcome, reason, timeout ms, lag ms, sweeper, L, retryable,
-- loss, forgiven (ms of its silence that do not count since the primary changed), uncounted (it is tried again at once and
-- nothing is held against it); of one that was lost with its worker, what is known of that: worker_reason, last beat wall
-- ms, silent ms, credit ms, spared by the brake. Returns 2 when the task was requeued, else 1, and whether that is because
-- its retries are used up.
local function verdict(task, v, retention)
  local f = task.f
  actor = v.sweeper
  free_first()
  write('ZADD', IX, '0', verdict_entry(task, v.reason))
  if v.reason ~= 'WORKER_LOST' then leave_notice(task, 'l', 'task_expired') end
  local score, report = leave(task)
  local heard, silent, credit = heard_at(task, score, v.L)
  if silent and v.forgiven then silent, credit = digits(silent - v.forgiven), digits(credit + v.forgiven) end
  local last, spared = heard, nil
  if v.last then
    last, silent, credit, spared = v.last, v.silent, v.credit, v.spared
  else
    spared = was_spared(task, score)
  end
  local e = {last = last, silent = silent, timeout = v.timeout, credit = credit or '0', lag = digits(v.lag), sweeper = v.sweeper,
    worker_reason = v.worker_reason, spared = spared}
  local after, exhausted
  if v.retryable then after, exhausted = retry_after(task, v.loss) end
  if v.uncounted and f.q and not f.cr then after = 0 end
  local data = '{"reason":"' .. v.reason .. '","lastHeartbeatAtMs":' .. (e.last or 'null')
    .. ',"silentMs":' .. (e.silent or 'null') .. ',"timeoutMs":' .. (e.timeout or 'null')
    .. ',"outageCreditMs":' .. e.credit .. ',"detectionLagMs":' .. e.lag
    .. ',"detectedAtMs":' .. NOW .. ',"sweeper":"' .. v.sweeper .. '"'
    .. (v.worker_reason and ',"workerReason":"' .. v.worker_reason .. '"' or '')
    .. (e.spared and ',"massExpiryHeld":true' or '') .. (exhausted and ',"retriesExhausted":true' or '') .. '}'
  if f.a > 0 and f.s ~= 'Q' then
    remember(task, report, {outcome = v.outcome, reason = v.reason, retry = retry_mark(after, exhausted), heard = heard,
      e = e})
  end
  if f.s == 'Q' then forget_result(task) end -- the error of the attempt that failed before is not this verdict's
  if v.outcome == 'ZOMBIE' then emit(task, 'task.zombie', data) end
  if after then
    requeue(task, v.reason, after)
    return 2
  end
  finish(task, 'F', v.reason, retention)
  emit(task, 'task.failed', data)
  return 1, exhausted
end
