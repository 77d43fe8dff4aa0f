-- Purpose: everything about one task as it is at this moment, or that part of it which somebody looks at. Needs clock,
-- shard, task and ending.
local GLANCED = {'s', 'a', 'w', 'pn', 'q', 'y', 't', 'i', 'r', 'e'} -- fields of the record that filters of lists look at
local LISTED = {'labels', 'workerLabels', 'output', 'metrics', 'error', 'phase', 'partial', 'cancelReason'}

-- The named fields that there are, as HGETALL returns all of them.
local function some(key, names)
  local values, pairs_of = redis.call('HMGET', key, unpack(names)), {}
  for i, name in ipairs(names) do
    if values[i] then
      pairs_of[#pairs_of + 1] = name
      pairs_of[#pairs_of + 1] = values[i]
    end
  end
  return pairs_of
end

-- `part`: all of it, list (payload and resources, which may be a megabyte, are left out), glance (what filters look at)
-- or labels (that and the labels). Returns {wall ms, {record fields}, {document fields}, {history}, packed report or
-- '', silent ms or '', outage credit ms since the last beat}; the record has no fields when there is no such task.
local function view(task, part)
  if not task.f then return {now, {}, {}, {}, '', '', 0} end
  local member = member_of(task)
  local score = beat_of(task, tonumber(redis.call('ZSCORE', task.beats, member)))
  local silent, credit = '', 0
  if score then
    silent, credit = string.format('%.0f', shard_time(CLOCK) - score), outage_credit(score)
  end
  local report = redis.call('HGET', PROGRESS, member) or ''
  if part == 'glance' or part == 'labels' then
    local doc = part == 'labels' and some(task.doc, {'labels'}) or {}
    return {now, some(task.key, GLANCED), doc, {}, report, silent, credit}
  end
  return {now, redis.call('HGETALL', task.key),
    part == 'list' and some(task.doc, LISTED) or redis.call('HGETALL', task.doc),
    redis.call('LRANGE', task.history, 0, -1), report, silent, credit}
end
