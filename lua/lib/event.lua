-- Purpose: writes what happened into a shard's stream of events. All events have the same fields in the same order, so
-- that the stream keeps the names once for many of them; what is not known of one is empty. Needs clock.
--#include lib/digits.lua
local EVENTS_MOST = '40000' -- in the stream of a shard, about, where sweepers do not keep up: a setting, which For puts in (lua.go)

-- Who does what this call tells of: the last argument of every script that writes events, which the store adds to all of
-- them, so that their headers leave it out. A sweeper's verdicts and repairs are its own, whoever asked for the sweep. Empty:
-- it is not known.
local actor = table.remove(ARGV)

-- `of`: what is known of the scope, the subject and its attempt, and of the run, the queue, the kind (a task's type),
-- the worker and the machine that filters ask for, and of the trace that the task belongs to; `data`: the rest as JSON
-- object, nil for none.
local function write_event(stream, type, of, data)
  redis.call('XADD', stream, 'MAXLEN', '~', EVENTS_MOST, '*', 'type', type, 'time', NOW, 'scope', of.scope or '',
    'subject', of.subject or '', 'attempt', of.attempt or '', 'run', of.run or '', 'queue', of.queue or '',
    'kind', of.kind or '', 'worker', of.worker or '', 'machine', of.machine or '', 'by', actor,
    'trace', of.trace or '', 'data', data or '{}')
end
