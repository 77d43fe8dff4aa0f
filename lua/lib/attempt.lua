-- Purpose: relates the attempt of a callback to its task. Needs clock, codes, shard, task and ending, and the shard's fences
--   after the keys of the task.
--#include lib/cancel.lua

-- Evaluates the attempt of a verified token. OK: it is the current one and live; MISMATCH: it is not the current one (and
-- which is); ENDED: Lubdub ended it (and why); TERMINAL: a worker or a cancel did (and the state); nil: the record is missing
-- or older, so the store has lost it and it is to be adopted. It is never adopted over a final end, which was acknowledged and
-- ends it as well, nor without its fence (owned.lua).
local function check_attempt(task, attempt, fence)
  local f = task.f
  local newer = not f or attempt > f.a
  if newer and not (f and is_final(f)) then
    if fence == '' then return MISMATCH, f and f.a or 0 end
    return nil
  end
  if not newer and (attempt < f.a or f.f ~= fence) then return MISMATCH, f.a end
  if f.s == 'D' or f.s == 'R' then return OK end
  if f.s == 'Q' or f.s == 'F' then
    if f.r == 'SUPERSEDED' then return MISMATCH, f.a + 1 end
    if f.r == 'WORKER_REPORTED' then return TERMINAL, 'F' end
    if f.r == 'SNOOZED' then return TERMINAL, f.s end
    return ENDED, f.r
  end
  if f.r == 'TERMINATED' and not newer then return ENDED, f.r end
  return TERMINAL, f.s
end

-- Adopts an attempt that the store has lost: a verified token whose record is missing or older proves it. `token`: attempt,
-- fence, timeout ms, interval ms, issued ms, run ('' : its own), worker that claimed it ('' : it was pushed), deadline (0:
-- none). A pending cancel applies to this attempt too; returns its reason, nil if there is none.
local function restore_attempt(task, L, token)
  local known, cancel = task.f, nil
  if known then
    cancel = known.s == 'R' and known.cr and redis.call('HGET', CANCELS, member_of(task)) -- it was acknowledged
    local score, report = leave(task)
    if known.s == 'D' or known.s == 'R' then
      append_history(task, report, {outcome = 'SUPERSEDED', last_beat = last_heartbeat(task, score, L)})
    end
    redis.call('HDEL', task.key, 'r', 'e', 'n', 'w', 'ci')
    if not cancel then redis.call('HDEL', task.key, 'cr') end
    forget_result(task)
    forget_end(task)
    redis.call('ZREM', DUE, 'x:' .. task.name, 'b:' .. task.name)
    known.r, known.n, known.w, known.ci, known.cr = nil, nil, nil, nil, cancel and known.cr
    if known.x then redis.call('ZADD', DUE, known.x, 'd:' .. task.name) end
  else
    task.f = {c = token.issued}
    if token.run ~= '' then task.f.u = token.run end
    redis.call('HSET', task.key, 'c', token.issued, 't', token.timeout, 'i', token.interval)
    if task.f.u then redis.call('HSET', task.key, 'u', task.f.u) end
    if token.deadline > 0 then
      task.f.x = token.deadline
      redis.call('HSET', task.key, 'x', token.deadline)
      redis.call('ZADD', DUE, token.deadline, 'd:' .. task.name)
    end
  end
  local f = task.f
  f.a, f.f, f.t, f.d = token.attempt, token.fence, tostring(token.timeout), token.issued
  redis.call('HSET', task.key, 'a', f.a, 'f', f.f, 't', f.t, 'd', f.d)
  if token.worker ~= '' then
    f.w = token.worker
    redis.call('HSET', task.key, 'w', f.w)
  end
  local grace, _, reason = unpack_cancel(cancel)
  if grace then
    redis.call('HSET', CANCELS, member_of(task), pack_cancel(grace, '', reason))
    if reason ~= '' then redis.call('HSET', task.doc, 'cancelReason', reason) end
  end
  emit(task, 'system.adopted', '{"known":' .. (known and 'true' or 'false') .. '}')
  return reason
end

local function adopt(task, L, token)
  local cancel = restore_attempt(task, L, token)
  begin(task, L)
  if held_by(task) then redis.call('ZADD', HELD, 0, held_entry(task)) end
  if cancel then leave_notice(task, 'c', cancel) end
end

-- Returns why a fenced worker ended, as fence.lua stored it; nil: not stored.
local function end_reason(fences, worker)
  local reasons = {'HEARTBEAT_TIMEOUT', 'SUPERSEDED', 'FORCED_OFFLINE', 'DEREGISTERED', 'DRAINED', 'DRAIN_DEADLINE'}
  for _, reason in ipairs(reasons) do
    if redis.call('ZSCORE', fences, worker .. '/' .. reason) then return reason end
  end
end

-- An attempt that the store has lost may belong to a worker that has ended and whose recovery has already handled this shard:
-- no recovery would ever take it again, so it ends like the others. Returns whether it was such an attempt.
local function lose_with_worker(task, L, token, retention, by)
  local fences = KEYS[TASKS + KEYS_PER_TASK]
  if token.worker == '' or not redis.call('ZSCORE', fences, token.worker) then return false end
  restore_attempt(task, L, token)
  move(task, 'D')
  local free = redis.call('ZSCORE', fences, token.worker .. '/free')
  verdict(task, {outcome = 'LOST', reason = 'WORKER_LOST', lag = 0, sweeper = by, L = L, retryable = not free,
    loss = true, uncounted = free, worker_reason = end_reason(fences, token.worker)}, retention)
  return true
end

-- Opens the task of a callback and admits only its live attempt, adopting it if the store lost it. `retention`, `by`: for the
-- verdict that it is lost with its worker; nil: it is adopted nevertheless, since a result is never discarded for that.
local function admit(task, L, token, retention, by)
  local code, detail = check_attempt(task, token.attempt, token.fence)
  if code then return code, detail end
  if retention and lose_with_worker(task, L, token, retention, by) then return ENDED, 'WORKER_LOST' end
  adopt(task, L, token)
  return OK
end
