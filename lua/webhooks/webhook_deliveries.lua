-- Purpose: lists deliveries of a webhook.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 '' all, D delivered or X dead, 2 number after which to begin, or '', 3 limit, 4 1 oldest first, else ''
-- Reply: {1 if the webhook exists, else 0, then for each its number and the entry about it}
-- Cost: O(log n + limit), at most 200 of 7 KB
--#include lib/clock.lua
--#include lib/webhook.lua
local set = ARGV[1] == 'D' and DELIVERED or ARGV[1] == 'X' and DEAD or KEPT
local from, most = ARGV[2] ~= '' and '(' .. ARGV[2], tonumber(ARGV[3])
local numbers
if ARGV[4] == '1' then
  numbers = redis.call('ZRANGEBYLEX', set, from or '-', '+', 'LIMIT', 0, most)
else
  numbers = redis.call('ZREVRANGEBYLEX', set, from or '+', '-', 'LIMIT', 0, most)
end
local reply = {redis.call('EXISTS', HOOK)}
if #numbers == 0 then return reply end
local about = redis.call('HMGET', ABOUT, unpack(numbers))
for i, number in ipairs(numbers) do
  reply[#reply + 1] = number
  reply[#reply + 1] = about[i] or ''
end
return reply
