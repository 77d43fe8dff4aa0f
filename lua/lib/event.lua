-- Purpose: writes what happened into a shard's stream of events. There are two sets of fields, each in its order, so that the
-- stream keeps the names once for many events; what is not known of one is empty or left out. Needs clock.
--#include lib/digits.lua
local EVENTS_MOST = '40000' -- in the stream of a shard, about, where sweepers do not keep up: a setting, which For puts in (lua.go)

-- Who does what this call tells of: the last argument of every script that writes events, which the store adds to all of
-- them, so that their headers leave it out. A sweeper's verdicts and repairs are its own, whoever asked for the sweep. Empty:
-- it is not known.
local actor = table.remove(ARGV)

local function append(stream, ...) return redis.call('XADD', stream, ...) end

local trimmed = false -- by this call: once is enough
local function add(stream, ...)
  if trimmed then return append(stream, '*', ...) end
  trimmed = true
  return append(stream, 'MAXLEN', '~', EVENTS_MOST, '*', ...)
end

-- What is known of the scope, the subject and its attempt, and of the run, the queue, the kind (a task's type), the worker
-- and the machine that filters ask for, and of the trace that the task belongs to, each '' where nothing is; `data`: the rest
-- as JSON object. Of what only tells of a task, such as pushed ones are, the fields that are mostly empty are left out: to
-- write five takes a third of what an event costs.
local function add_event(stream, type, data, scope, subject, attempt, run, queue, kind, worker, machine, trace)
  if run == '' and queue == '' and kind == '' and machine == '' and trace == '' then
    return add(stream, 'type', type, 'time', NOW, 'scope', scope, 'subject', subject, 'attempt', attempt, 'worker', worker,
      'by', actor, 'data', data)
  end
  add(stream, 'type', type, 'time', NOW, 'scope', scope, 'subject', subject, 'attempt', attempt, 'run', run, 'queue', queue,
    'kind', kind, 'worker', worker, 'machine', machine, 'by', actor, 'trace', trace, 'data', data)
end

-- `of`: the same by name, as far as it is known; `data`: nil for none.
local function write_event(stream, type, of, data)
  add_event(stream, type, data or '{}', of.scope or '', of.subject or '', of.attempt or '', of.run or '', of.queue or '',
    of.kind or '', of.worker or '', of.machine or '', of.trace or '')
end
