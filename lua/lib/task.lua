-- Purpose: a task's record and the common parts of its transitions. Needs clock and shard.
-- Fields of the record (tracker/schema/fields.go), absent when empty or default; times are wall ms:
--   s state: Q, D, R, S, F or C, the first letter of its name (Q also of SCHEDULED); a number of the current attempt; f fence
--   of that attempt; o fence of the creation; u run; k key; as asset; tp traceparent of its creation; q queue; y type; rn
--   runtime; w worker of the current attempt; ci claim with which that worker got it, hashed; pn worker that it is pinned to;
--   pl strategy by which it is placed; wl hash of the required worker labels; t heartbeat timeout, ms; i heartbeat interval,
--   ms; g cancel grace, ms; so start timeout, ms; rt run timeout, ms; lt requested token life, s; l token life of the current
--   attempt, s; nr 1: its tokens are not renewed; p retry policy, maxAttempts:maxLosses:initialMs:multiplier:maxMs; nf
--   failures; nl losses; c when it was created; d when the current attempt was dispatched; b when it was started; e when the
--   task ended; x deadline; nb when it may start at the earliest; sl 1: it is listed as SCHEDULED; n when its next attempt
--   may start; cr when a cancel was requested; rd since when it has been ready to be claimed; r why it failed or was
--   requeued; bh score that the mass-expiry brake gave the attempt, shard time; bb its last heartbeat before that, shard
--   time; sc schedule that it is a fire of; z class and bytes of its documents and history; aw 1: a request waits, or has
--   waited, for its end (await.lua).
--#include lib/event.lua
--#include lib/record.lua
--#include lib/queue.lua
--#include lib/queueentry.lua
--#include lib/history.lua
--#include lib/report.lua
local KEYS_PER_TASK = 5
local MAX_HISTORY = 100

-- Opens the task whose keys begin at KEYS[first]; its fields are nil if there is no record.
local function open_task(first, scope, id)
  return {scope = scope, id = id, name = scope .. '/' .. id, f = fields_at(KEYS[first]),
    key = KEYS[first], doc = KEYS[first + 1], history = KEYS[first + 2], run = KEYS[first + 3],
    beats = KEYS[first + 4]}
end

-- Every event of a task that a schedule created names the schedule, as the last member of `data`.
local function emit(task, type, data)
  local f = task.f or {}
  data = data or '{}'
  if f.sc then data = string.sub(data, 1, -2) .. (data == '{}' and '' or ',') .. '"scheduleId":"' .. f.sc .. '"}' end
  add_event(EVENTS, type, data, task.scope, task.id, f.a and digits(f.a) or '', f.u or '', f.q or '', f.y or '', f.w or '',
    '', f.tp or '')
end

-- In addition to the entry for its state, IX has entries by which tasks are counted and listed, after the names of all scopes:
-- {<scope>/<queue>/<task> while an attempt of a queue's task is dispatched or running, |<scope>/<state>/<ended wall ms>/<task>
-- while it is finished, and each verdict about it, for as long as its task may be kept, as }<scope>/<wall
-- ms>/<task>/<attempt>/<reason>/<queue>/<type>/<worker>; with }! before the scope and the error after the worker, a failure that
-- a worker reported.
local function is_live(state) return state == 'D' or state == 'R' end

local function running_entry(task) return running_in_queue(task.scope, task.id, task.f.q) end

-- A current time has 13 digits anyway, and is usually formatted already.
local function sortable(ms)
  local text = type(ms) == 'string' and ms or digits(ms)
  return #text == 13 and text or string.format('%013d', tonumber(text))
end

local function end_entry(task, state, ended)
  return '|' .. task.scope .. '/' .. state .. '/' .. sortable(ended) .. '/' .. task.id
end

local function verdict_entry(task, reason)
  local f = task.f
  return '}' .. task.scope .. '/' .. sortable(now) .. '/' .. task.id .. '/' .. digits(f.a) .. '/' .. reason .. '/'
    .. (f.q or '') .. '/' .. (f.y or '') .. '/' .. (f.s ~= 'Q' and f.w or '')
end

-- Removes the task from the list of ends, if it is in it: the task continues, or is removed.
local function forget_end(task)
  if task.f.e then write('ZREM', IX, end_entry(task, task.f.s, task.f.e)) end
  task.f.e = nil
end

-- A SCHEDULED task is in lists of its own, under W. Its record has the state Q and the mark sl: so a release without SCHEDULED
-- makes it claimable when it is due.
local function list_letter(f) return f.sl and f.s == 'Q' and 'W' or f.s end

-- Removes the task from the lists of SCHEDULED ones, also if a release without these has moved it meanwhile.
local function unschedule(task)
  write('ZREM', IX, task.scope .. '/W/' .. task.id)
  if task.f.u then write('ZREM', task.run, 'W/' .. task.id) end
  redis.call('HDEL', task.key, 'sl')
  task.f.sl = nil
end

-- Moves the task from the lists of its previous state (nil: it had none) to those of its new one, W: SCHEDULED. `ended`: when it
-- ended, wall ms, if it has.
local function index(task, from, to, ended)
  if from and task.f.sl then unschedule(task) end
  local begins, ends = is_live(to) and not is_live(from), is_live(from) and not is_live(to)
  forget_end(task)
  if from and ends and task.f.q then -- two entries cost little more than one
    write('ZREM', IX, task.scope .. '/' .. from .. '/' .. task.id, running_entry(task))
  elseif from then
    write('ZREM', IX, task.scope .. '/' .. from .. '/' .. task.id)
  end
  local more = begins and task.f.q and running_entry(task) or ended and end_entry(task, to, ended)
  if to and more then
    write('ZADD', IX, '0', task.scope .. '/' .. to .. '/' .. task.id, '0', more)
  elseif to then
    write('ZADD', IX, '0', task.scope .. '/' .. to .. '/' .. task.id)
  end
  if task.f.u then
    if from then write('ZREM', task.run, from .. '/' .. task.id) end
    if to then write('ZADD', task.run, '0', to .. '/' .. task.id) end
  end
end

-- Sets the state of the task, with other fields as name and value, e first if it has ended, and the counter that retry_after
-- has increased.
local function move(task, state, ...)
  if task.f.s ~= state then
    if task.f.rd then unready(task) end
    local name, value = ...
    index(task, task.f.s, not task.f.s and task.f.sl and 'W' or state, name == 'e' and value)
    task.f.s = state
  end
  if task.counted then
    redis.call('HSET', task.key, 's', state, task.counted, task.f[task.counted], ...)
  else
    redis.call('HSET', task.key, 's', state, ...)
  end
end

-- Makes a queued task claimable whose start time has come, or whose backoff is over. It adds to lists at once: the same call may
-- then end the task, and lib/bulk.lua removes before it adds.
local function end_wait(task)
  local f = task.f
  if f.sl then
    unschedule(task)
    redis.call('ZADD', IX, 0, task.scope .. '/Q/' .. task.id)
    if f.u then redis.call('ZADD', task.run, 0, 'Q/' .. task.id) end
  end
  redis.call('HDEL', task.key, 'n')
  f.n = nil
  make_ready(task)
end

-- Reports whether the brake has held the attempt since that heartbeat.
local function was_held_by_brake(task, score)
  return score and (score == tonumber(task.f.bh) or score == tonumber(task.f.bb)) or false
end

-- The size of a task's documents and history, if it is not small, is in its record (z: class and bytes) and in IX among the
-- sizes of its tenant, ~<tenant>/<class>/<workspace>/<task>, for tenant_sizes.lua to add up. Four classes are a doubling.
local LIGHT, LARGEST = 1024, 57 -- bytes that count as none; classes are the letters from A on

local function size_entry(task, z)
  local tenant, workspace = string.match(task.scope, '^([^/]*)/(.*)$')
  return '~' .. tenant .. '/' .. string.sub(z, 1, 1) .. '/' .. workspace .. '/' .. task.id
end

-- Reports whether a size is listed.
local function is_listed(z) return z and string.sub(z, 1, 1) ~= '-' end

-- Changes the recorded size of the task by some bytes.
local function add_bytes(task, more)
  local was, class = task.f.z, '-'
  local bytes = math.max(0, (was and tonumber(string.sub(was, 2)) or 0) + more)
  if bytes > LIGHT then
    class = string.char(65 + math.min(LARGEST, math.floor(4 * math.log(bytes / LIGHT) / math.log(2))))
  end
  local z = class .. string.format('%.0f', bytes)
  task.f.z = z
  redis.call('HSET', task.key, 'z', z)
  if was and string.sub(was, 1, 1) == class then return end
  if is_listed(was) then write('ZREM', IX, size_entry(task, was)) end
  if is_listed(z) then write('ZADD', IX, '0', size_entry(task, z)) end
end

-- Removes the current attempt from everything that has it as live. Returns its last heartbeat in shard time (nil: none) and
-- its last report ('' : none); a caller that knows these leaves them in task.score and task.report, with its name in
-- task.member.
local function leave(task)
  local f, member, score, report = task.f, task.member or member_of(task), task.score, task.report
  if not score then
    score = tonumber(redis.call('ZSCORE', task.beats, member))
    report = redis.call('HGET', PROGRESS, member) or ''
  end
  write('ZREM', task.beats, member)
  if report ~= '' then write('HDEL', PROGRESS, member) end
  if f.s == 'D' then write('ZREM', TIMERS, 's:' .. member) end
  if f.rt then write('ZREM', TIMERS, 'r:' .. member) end
  if f.cr then
    write('HDEL', CANCELS, member)
    write('ZREM', TIMERS, 'c:' .. member)
  end
  if held_by(task) then release_place(task) end
  return score, report
end

-- Appends the ended attempt to the history. `ended`: outcome, reason, retry ('1': another attempt follows, 'x': the policy
-- allows no more, nil), last_beat (its last heartbeat, wall ms), e (evidence of a verdict; nil: a worker ended it) and its
-- worker's report: err, completed (wall ms by the worker's clock), metrics.
local function append_history(task, report, ended)
  local _, _, pct, message = unpack_report(report)
  local entry = pack_ended(task.f, pct, message, ended)
  local length = redis.call('RPUSH', task.history, entry)
  local more = (length > 1 or #entry > LIGHT) and #entry or 0 -- most tasks have one short entry
  if length > MAX_HISTORY then
    more = more - #redis.call('LINDEX', task.history, 0)
    redis.call('LTRIM', task.history, -MAX_HISTORY, -1)
  end
  if more ~= 0 then add_bytes(task, more) end
end

-- Makes the attempt, whose state is R, live.
local function run(task, L)
  local f, member = task.f, member_of(task)
  if f.rt then redis.call('ZADD', TIMERS, L + f.rt, 'r:' .. member) end
  ensure_beats(task.beats, f.t or '0')
  redis.call('ZADD', task.beats, L, member)
  emit(task, 'task.started')
end

-- Starts the dispatched attempt at its first sign of life.
local function begin(task, L, worker)
  local f = task.f
  f.b = NOW
  if worker and worker ~= '' and not f.w then
    f.w = worker
    move(task, 'R', 'b', NOW, 'w', worker)
  else
    move(task, 'R', 'b', NOW)
  end
  redis.call('ZREM', TIMERS, 's:' .. member_of(task))
  run(task, L)
end
