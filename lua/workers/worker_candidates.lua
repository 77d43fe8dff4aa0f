-- Purpose: reads only the fields of many workers that a selection needs.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:worker:<scope>/<id> of each worker
-- ARGV: 1 number of conditions, then for each a field, its kind ('=' equals the text, '~' contains it, ',' has it in its
--   comma-separated list) and the text; then the fields to read
-- Reply: {wall ms, shard ms, for each worker its last heartbeat in shard ms or '' and those fields, TAB-separated, or '' for
--   one that is gone or does not meet the conditions}
-- Cost: O(workers)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local call, concat, find = redis.call, table.concat, string.find
local conditions, fields, column, column_of = tonumber(ARGV[1]), {}, {}, {}
for c = 1, conditions do -- each field is read once
  local field = ARGV[3 * c - 1]
  if not column_of[field] then
    fields[#fields + 1] = field
    column_of[field] = #fields
  end
  column[c] = column_of[field]
end
local first = 3 * conditions + 2
local columns = #ARGV - first + 2

local function meets(values)
  for c = 1, conditions do
    local is, how, text = values[column[c]] or '', ARGV[3 * c], ARGV[3 * c + 1]
    if how == '=' then
      if is ~= text then return false end
    else
      if how == ',' then is, text = ',' .. is .. ',', ',' .. text .. ',' end
      if not find(is, text, 1, true) then return false end
    end
  end
  return true
end

local reply = {now, L}
for i = 2, #KEYS do
  local row = ''
  if conditions == 0 or meets(call('HMGET', KEYS[i], unpack(fields))) then
    local f = call('HMGET', KEYS[i], 'bl', unpack(ARGV, first))
    for j = 1, columns do f[j] = f[j] or '' end
    row = concat(f, '\t')
  end
  reply[i + 1] = row
end
return reply
