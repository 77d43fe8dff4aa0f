-- Purpose: everything about a task at this moment, or a requested part of it. Needs clock, record, member and credit, and the
--   keys CLOCK and PROGRESS of its shard. Fields of the record: the first SHOWN are those that filters of lists need, the
--   others are about the heartbeat.
local GLANCED, SHOWN = {'s', 'a', 'sl', 'w', 'pn', 'q', 'y', 't', 'i', 'r', 'e', 'sc', 'f', 'bh', 'bb'}, 12
local LISTED = {'labels', 'workerLabels', 'output', 'metrics', 'error', 'phase', 'partial', 'cancelReason'}
local LABELS = {'labels'}

-- Those of the first `last` fields that have values, in the format of HGETALL, and their total length.
local function name_value_pairs(names, values, last)
  local found, n, bytes = {}, 0, 0
  for i = 1, last do
    local value = values[i]
    if value then
      found[n + 1], found[n + 2] = names[i], value
      n, bytes = n + 2, bytes + #value
    end
  end
  return found, bytes
end

-- Reads the fields of the record that the part shows, and stores in task.f what this script needs; nil if there is no record.
local function read_record(task, part)
  local shown
  if part == 'glance' or part == 'labels' then
    local values = redis.call('HMGET', task.key, unpack(GLANCED))
    shown = name_value_pairs(GLANCED, values, SHOWN)
    task.f = {s = values[1], a = tonumber(values[2]) or 0, f = values[13], bh = values[14], bb = values[15]}
    return shown[1] and shown
  end
  task.f, shown = fields_at(task.key)
  return shown
end

-- Reports whether what a list shows of the task fits, as far as its record has the size (z, lib/task.lua).
local function fits(task, room)
  local bytes = tonumber(string.sub(task.f.z or '', 2)) or 0
  return bytes <= room
    or bytes - redis.call('HSTRLEN', task.doc, 'payload') - redis.call('HSTRLEN', task.doc, 'resources')
      - redis.call('HSTRLEN', task.doc, 'details') <= room
end

-- Reads the fields of the document that the part shows, and their length, unless it is the whole document.
local function read_document(task, part)
  if part == 'glance' then return {}, 0 end
  if part == 'all' then return redis.call('HGETALL', task.doc), 0 end
  local names = part == 'labels' and LABELS or LISTED
  return name_value_pairs(names, redis.call('HMGET', task.doc, unpack(names)), #names)
end

-- Reads the history if the part shows it and an attempt has ended, and its length.
local function read_history(task, part)
  local f, bytes = task.f, 0
  local first = (f.s == 'D' or f.s == 'R') and f.a <= 1 or f.s == 'Q' and f.a == 0
  if first or part == 'glance' or part == 'labels' then return {}, 0 end
  local history = redis.call('LRANGE', task.history, 0, -1)
  for i = 1, #history do bytes = bytes + #history[i] end
  return history, bytes
end

local view_L -- current shard time, once it was needed

-- Returns the packed report or '', silent ms or '', and the outage credit in ms since the last heartbeat. Only a running
-- attempt has them.
local function read_beat(task)
  if task.f.s ~= 'R' then return '', '', 0 end
  local member = member_of(task)
  local report = redis.call('HGET', PROGRESS, member) or ''
  local score = beat_of(task, tonumber(redis.call('ZSCORE', task.beats, member)))
  if not score then return report, '', 0 end
  view_L = view_L or shard_time(CLOCK)
  return report, string.format('%.0f', view_L - score), outage_credit(score)
end

-- `part`: all of it, list (without payload, resources and details, which may be a megabyte), glance (what filters need) or labels (that
-- and the labels). Returns {wall ms, {record fields}, {document fields}, {history}, packed report or '', silent ms or '',
-- outage credit ms since the last heartbeat}; the record has no fields if there is no such task. nil: what a list shows of its
-- document and history exceeds `room` (nil: unlimited). Their length is in task.bytes. Reads the record again.
local function view(task, part, room)
  task.bytes = 0
  local record = read_record(task, part)
  if not record then return {now, {}, {}, {}, '', '', 0} end
  if room and part == 'list' and not fits(task, room) then return nil end
  local document, of_document = read_document(task, part)
  local history, of_history = read_history(task, part)
  task.bytes = of_document + of_history
  return {now, record, document, history, read_beat(task)}
end
