-- Purpose: schedules one delivery to be tried again now, whatever its status.
-- Guarantees: a delivery that is in progress, or that is not stored, is left unchanged.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 <scope>/<id>, 2 number of the delivery
-- Reply: {OK}, {NOT_FOUND}, or {REFUSED}: the webhook is off
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/webhook.lua
local name, number = ARGV[1], ARGV[2]
local on = redis.call('HGET', HOOK, 'e')
if not on or redis.call('HEXISTS', ABOUT, number) == 0 then return {NOT_FOUND} end
if on ~= '1' then return {REFUSED} end
if redis.call('ZSCORE', FLIGHT, number) then return {OK} end
local waits = redis.call('ZSCORE', QUEUE, number)
set_status(number, 'P', not waits and '0' or nil, NOW, '')
redis.call('ZREM', DELIVERED, number)
redis.call('ZREM', DEAD, number)
redis.call('ZADD', QUEUE, NOW, number)
schedule_webhook(name)
record_bytes()
return {OK}
