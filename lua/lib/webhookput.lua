-- Purpose: adds deliveries to a webhook's queue, and drops the oldest ones if all would take too many bytes, which one message
--   of type webhook.gap reports to the webhook and an event to everyone else. Needs clock, webhook and webhookoff.
local DROPPED_AT_ONCE, DROPPED_BYTES = 500, 1048576 -- deliveries that one script drops at most, and bytes after which it stops
local GAP_BYTES = 2048 -- maximum size of the message of a gap

local queue, kept, about, bodies, number = {}, {}, {}, {}, tonumber(redis.call('HGET', HOOK, 'n') or 0)

-- Adds a delivery after the others; put_all() stores it.
local function put(event, type, subject, message, body)
  number = number + 1
  local n, what = string.format('%013.0f', number), pack_about(event, type, subject, message)
  queue[#queue + 1], queue[#queue + 2] = NOW, n
  kept[#kept + 1], kept[#kept + 2] = '0', n
  about[#about + 1], about[#about + 2] = n, what
  bodies[#bodies + 1], bodies[#bodies + 2] = n, body
  bytes_added = bytes_added + ENTRY_BYTES + #what + #body
  return n
end

local function put_all()
  if #queue == 0 then return end
  redis.call('ZADD', QUEUE, unpack(queue))
  redis.call('ZADD', KEPT, unpack(kept))
  redis.call('HSET', ABOUT, unpack(about))
  redis.call('HSET', BODIES, unpack(bodies))
  redis.call('HSET', HOOK, 'n', digits(number))
end

-- The pending deliveries that this script drops: how many, and the times of the first and the last, in the format of messages.
local dropped = {count = 0, first = '~', last = ''}
local function note_time(body)
  local time = string.match(body or '', '"timestamp":"([^"]*)"')
  if not time then return end
  if time < dropped.first then dropped.first = time end
  if time > dropped.last then dropped.last = time end
end

-- Pending gap messages by number: the number of dropped deliveries, and the times of the first and the last. One waits; others
-- were being delivered when it was added.
local gaps, had_gaps = {}, false
for n, count, from, to in string.gmatch(redis.call('HGET', HOOK, 'g') or '', '(%d+):(%d+):([^%s,]*),?(%S*)') do
  gaps[n], had_gaps = {count = tonumber(count), from = from, to = to}, true
end

local function drop(body)
  dropped.count = dropped.count + 1
  note_time(body)
end

local function pack_gap(n, count, from, to) return n .. ':' .. digits(count) .. ':' .. from .. ',' .. to end

-- Adds what the message of a gap represents to what is dropped.
local function merge_gap(n)
  local gap = gaps[n]
  dropped.more = (dropped.more or 0) + gap.count
  if gap.from < dropped.first then dropped.first = gap.from end
  if gap.to > dropped.last then dropped.last = gap.to end
  gaps[n] = nil
end

-- Removes the oldest deliveries until all take at most `most` bytes: finished ones first, then, with `pending`, those that are
-- still to be delivered. None of those in `except`.
local function drop_oldest(most, pending, except)
  local left, begin = DROPPED_AT_ONCE, stored_bytes()
  for _, set in ipairs(pending and {DELIVERED, DEAD, KEPT} or {DELIVERED, DEAD}) do
    local over, going = stored_bytes() - most, {}
    for _, n in ipairs(over > 0 and left > 0 and redis.call('ZRANGE', set, 0, left - 1) or {}) do
      if over <= 0 or begin - most - over > DROPPED_BYTES then break end
      if not (except and except[n]) then
        going[#going + 1] = n
        over = over - bytes_of(n)
      end
    end
    left = left - #going
    if set == KEPT and #going > 0 then
      for i, body in ipairs(redis.call('HMGET', BODIES, unpack(going))) do
        if gaps[going[i]] then merge_gap(going[i]) else drop(body) end
      end
    end
    forget(going)
  end
end

-- Reports what was dropped: in the message of a gap that still waits, or in a new one. The first of them is an event.
local function report_gap(scope, id, text, type, begins)
  if dropped.count + (dropped.more or 0) == 0 then return end
  if not had_gaps then
    emit_webhook('webhook.dropped', scope, id, '{"reason":"QUEUE_FULL","dropped":' .. digits(dropped.count) .. '}')
  end
  local waits, still = nil, {}
  for n, gap in pairs(gaps) do
    if redis.call('ZSCORE', QUEUE, n) then
      merge_gap(n)
      if waits then forget({waits}) end
      waits = n
    elseif redis.call('ZSCORE', FLIGHT, n) then
      still[#still + 1] = pack_gap(n, gap.count, gap.from, gap.to)
    end
  end
  local count = dropped.count + (dropped.more or 0)
  local body = string.gsub(text, '%$(%u)', {F = dropped.first, T = dropped.last, N = digits(count)})
  if waits then
    bytes_added = bytes_added + #body - redis.call('HSTRLEN', BODIES, waits)
    redis.call('HSET', BODIES, waits, body)
  else
    waits = put('', type, id, begins .. digits(number + 1), body)
  end
  still[#still + 1] = pack_gap(waits, count, dropped.first, dropped.last)
  redis.call('HSET', HOOK, 'g', table.concat(still, ' '))
end
