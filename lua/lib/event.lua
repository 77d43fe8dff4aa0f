-- Purpose: writes events into a shard's stream. There are two sets of fields, each in a fixed order, so that the stream stores
--   the names once for many events; unknown fields are empty or left out. Needs clock.
--#include lib/digits.lua
local EVENTS_MOST = '40000' -- approximate maximum in a shard's stream if sweepers do not keep up: a setting that For inserts (lua.go)

-- The actor of the events of this call: the last argument of every script that writes events. The store adds it to all of
-- them, so their headers leave it out. The actor of a sweeper's verdicts and repairs is the sweeper, no matter who requested the
-- sweep. Empty: unknown.
local actor = table.remove(ARGV)

local function append(stream, ...) return redis.call('XADD', stream, ...) end

local trimmed = false -- by this call: once is enough
local function add(stream, ...)
  if trimmed then return append(stream, '*', ...) end
  trimmed = true
  return append(stream, 'MAXLEN', '~', EVENTS_MOST, '*', ...)
end

-- The scope, the subject and its attempt, and the run, the queue, the kind (a task's type), the worker, the machine and the
-- trace, by which events are filtered, each '' if there is none; `data`: the rest as JSON object. Events of pushed tasks leave
-- out the fields that are mostly empty: writing five fields takes a third of the cost of an event.
local function add_event(stream, type, data, scope, subject, attempt, run, queue, kind, worker, machine, trace)
  if run == '' and queue == '' and kind == '' and machine == '' and trace == '' then
    return add(stream, 'type', type, 'time', NOW, 'scope', scope, 'subject', subject, 'attempt', attempt, 'worker', worker,
      'by', actor, 'data', data)
  end
  add(stream, 'type', type, 'time', NOW, 'scope', scope, 'subject', subject, 'attempt', attempt, 'run', run, 'queue', queue,
    'kind', kind, 'worker', worker, 'machine', machine, 'by', actor, 'trace', trace, 'data', data)
end

-- `of`: the same fields by name, as far as they are known; `data`: nil for none.
local function write_event(stream, type, of, data)
  add_event(stream, type, data or '{}', of.scope or '', of.subject or '', of.attempt or '', of.run or '', of.queue or '',
    of.kind or '', of.worker or '', of.machine or '', of.trace or '')
end
