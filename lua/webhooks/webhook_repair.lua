-- Purpose: compares an entry about a webhook with its record, and the record with all entries that it needs, and repairs
--   differences.
-- Guarantees: everything is checked again in this step; correct entries are left unchanged; each repair is an event, one for
--   all deliveries of a call. Pending deliveries are sent, unless their messages are lost.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 how many deliveries to examine, 4 where to continue with them, '' at the beginning
-- Reply: {{what was repaired}, where to continue, '' at the end}
-- Cost: O(deliveries log n), at most 50 of 7 KB, none if their numbers match
--#include lib/clock.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
local scope, id, most, from = unpack(ARGV, 1, 4)
local name, done, reported = scope .. '/' .. id, {}, {}

local function repaired(what)
  if reported[what] then return end
  reported[what] = true
  done[#done + 1] = what
  emit_webhook('system.repaired', scope, id, '{"what":"' .. what .. '"}')
end

if redis.call('EXISTS', HOOK) == 0 then
  if redis.call('ZREM', LIST, name) == 1 then repaired('stray_webhook') end
  if redis.call('ZREM', HOOK_DUE, name) == 1 then repaired('stray_look') end
  if redis.call('UNLINK', QUEUE, FLIGHT, KEPT, ABOUT, BODIES, DELIVERED, DEAD, SEEN) > 0 then repaired('stray_deliveries') end
  return {done, ''}
end

if redis.call('ZADD', LIST, 0, name) == 1 then repaired('missing_webhook') end
local due = tonumber(redis.call('ZSCORE', HOOK_DUE, name))
schedule_webhook(name)
if not due or due > tonumber(redis.call('ZSCORE', HOOK_DUE, name)) then repaired('missing_look') end

local HOMES = {D = {DELIVERED}, X = {DEAD}, P = {QUEUE, FLIGHT}}

local function fits()
  local all = redis.call('ZCARD', KEPT)
  return all == redis.call('HLEN', ABOUT) and all == redis.call('HLEN', BODIES)
    and all == count_pending() + redis.call('ZCARD', DELIVERED) + redis.call('ZCARD', DEAD)
end


local function check(number)
  local status, next = delivery_status(redis.call('HGET', ABOUT, number) or '')
  local homes = HOMES[status or '']
  if not homes or redis.call('HEXISTS', BODIES, number) == 0 then
    forget({number})
    return repaired('stray_delivery')
  end
  local is_home = redis.call('ZSCORE', homes[1], number) or homes[2] and redis.call('ZSCORE', homes[2], number)
  local kept = redis.call('ZADD', KEPT, 0, number) == 0
  if not is_home then redis.call('ZADD', homes[1], homes[2] and (tonumber(next) or NOW) or 0, number) end
  if not (kept and is_home) then repaired('missing_delivery') end
end

-- First the entries about deliveries are examined, then their list and their messages, which may have no entry.
local continue_at = ''
if from ~= '' or not fits() then
  local part, cursor = string.match(from, '^(%a):(%d+)$')
  part, cursor = part or 'A', cursor or '0'
  local scan, key, next = 'HSCAN', ABOUT, 'K'
  if part == 'K' then scan, key, next = 'ZSCAN', KEPT, 'B' end
  if part == 'B' then scan, key, next = 'HSCAN', BODIES, nil end
  local page = redis.call(scan, key, cursor, 'COUNT', most)
  for i = 1, #page[2], 2 do check(page[2][i]) end
  continue_at = page[1] ~= '0' and part .. ':' .. page[1] or next and next .. ':0' or ''
end
if reported.missing_delivery or reported.stray_delivery then
  schedule_webhook(name)
  record_bytes()
end
return {done, continue_at}
