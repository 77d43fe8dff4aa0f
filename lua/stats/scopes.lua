-- Purpose: lists the scopes with tasks or workers in a shard.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:ix, 2 …:workers
-- ARGV: 1 tenant, or '' for all, 2 scope after which to begin, as replied, or '', 3 limit of scopes, 4 1 for the reverse order, else ''
-- Reply: {<tenant>/<workspace>/, …} in order
-- Cost: O(log n) for each
local tenant, after, limit, reverse = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local low, high = tenant == '' and '[0' or '[' .. tenant .. '/', tenant == '' and '({' or '(' .. tenant .. '0'

local function head(key)
  local found
  if reverse then
    found = redis.call('ZREVRANGEBYLEX', key, after == '' and high or '(' .. after, low, 'LIMIT', 0, 1)[1]
  else
    found = redis.call('ZRANGEBYLEX', key, after == '' and low or '(' .. after .. '\255', high, 'LIMIT', 0, 1)[1]
  end
  return found and string.match(found, '^[^/]*/[^/]*/')
end

local found = {}
while #found < limit do
  local a, b = head(KEYS[1]), head(KEYS[2])
  if not a and not b then break end
  local first = a
  if not a or b and (reverse and b > a or not reverse and b < a) then first = b end
  found[#found + 1], after = first, first
end
return found
