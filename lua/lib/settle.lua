-- Purpose: ends attempts. Needs clock, shard and task.

-- Ends the task itself: nothing but retention may touch it from here.
local function finish(task, state, reason, retention)
  local f = task.f
  if reason then
    move(task, state, 'e', NOW, 'r', reason)
  else
    move(task, state, 'e', NOW)
    if f.r then redis.call('HDEL', task.key, 'r') end
  end
  if f.n then
    redis.call('HDEL', task.key, 'n')
    write('ZREM', DUE, 'b:' .. task.name)
  end
  if f.pl then write('ZREM', DUE, 'p:' .. task.name) end
  if f.x then write('ZREM', DUE, 'd:' .. task.name) end
  write('ZADD', DUE, digits(now + retention), 'x:' .. task.name)
end

-- Forgets what the attempt before said at its end: the next one has a result of its own.
local function forget_result(task)
  redis.call('HDEL', task.doc, 'output', 'metrics', 'phase', 'partial', 'error', 'cancelReason')
end

-- Tells whether the policy allows one more attempt after a failure or a loss, counting it, and after which backoff.
local function retry_after(task, loss)
  local f = task.f
  if not f.q or not f.p or f.cr then return nil end
  local attempts, losses, initial, multiplier, max = string.match(f.p, '^(%d+):(%d+):(%d+):([%d.]+):(%d+)$')
  local counter = loss and 'nl' or 'nf'
  local count = redis.call('HINCRBY', task.key, counter, 1)
  f[counter] = count
  if loss and count > tonumber(losses) or not loss and count >= tonumber(attempts) then return nil end
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
  emit(task, 'task.retrying', f.a, '{"reason":"' .. reason .. '","nextAttemptAtMs":' .. at .. '}')
end

-- Above maxmemory Redis refuses a command that may take memory only as the first with which a script writes. What ends
-- attempts frees in the end, and nothing past its retention may wait behind a verdict that was refused.
local freed = false
local function free_first()
  if not freed then redis.call('ZREM', TIMERS, '') end
  freed = true
end

-- Wall ms since shard time `since` in which shard time did not run. Of an entry that `since` lies in it is a share.
local outages = {}
local function outage_credit(since)
  local credit, i = 0, 0
  while true do
    outages[i] = outages[i] or redis.call('LINDEX', OUTAGES, i) or ''
    local L, _, lost, ran = string.match(outages[i], '^(%d+)\t(%d+)\t(%d+)\t(%d+)$')
    L, ran = tonumber(L), tonumber(ran)
    if not L or L < since or L == since and ran > 0 then return credit end
    local share = ran > 0 and math.min(1, (L - since) / ran) or 1
    credit, i = credit + math.floor(lost * share), i + 1
  end
end

-- A verdict of Lubdub's own about the current attempt. `v`: outcome, reason, timeout ms, lag ms, sweeper, L,
-- silent ms and last beat wall ms (when the attempt's own beats do not say), retryable, loss, uncounted (it is tried
-- again at once and nothing is held against it). Returns 2 when the task was requeued, else 1.
local function verdict(task, v, retention)
  free_first()
  if v.reason ~= 'WORKER_LOST' then tell_worker(task, 'l', 'task_expired') end
  local score, report = leave(task)
  score = beat_of(task, score)
  local e = {timeout = v.timeout, lag = digits(v.lag), sweeper = v.sweeper, silent = v.silent, credit = '0'}
  if v.last then
    e.last = v.last
  elseif score then
    local silent, credit = v.L - score, outage_credit(score)
    e.silent, e.credit, e.last = digits(silent), digits(credit), digits(now - silent - credit)
  end
  local after = v.retryable and retry_after(task, v.loss)
  if v.uncounted and task.f.q and not task.f.cr then after = 0 end
  local data = '{"reason":"' .. v.reason .. '","lastHeartbeatAtMs":' .. (e.last or 'null')
    .. ',"silentMs":' .. (e.silent or 'null') .. ',"timeoutMs":' .. (e.timeout or 'null')
    .. ',"outageCreditMs":' .. e.credit .. ',"detectionLagMs":' .. e.lag
    .. ',"detectedAtMs":' .. NOW .. ',"sweeper":"' .. v.sweeper .. '"}'
  if task.f.a > 0 and task.f.s ~= 'Q' then remember(task, v.outcome, v.reason, after, report, e) end
  if task.f.s == 'Q' then forget_result(task) end -- the error of the attempt that failed before is not this verdict's
  if v.outcome == 'ZOMBIE' then emit(task, 'task.zombie', task.f.a, data) end
  if after then
    requeue(task, v.reason, after)
    return 2
  end
  finish(task, 'F', v.reason, retention)
  emit(task, 'task.failed', task.f.a, data)
  return 1
end
