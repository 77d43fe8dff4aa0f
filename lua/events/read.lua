-- Purpose: reads the events of some shards from a reader's position.
-- Guarantees: writes nothing. A shard is read from the last entry that the reader has seen, which comes first if it still
--   exists, so that the reader sees that nothing is missing in between.
-- KEYS: lubdub:{shard}:events of each shard. On Cluster a call covers one shard only
-- ARGV: 1 limit of entries, 2 limit of entries of one shard, 3 a field to filter by, or '' for all entries, 4 the value that
--   it must have, 5 another field, or '': entries that have it match too; then for each shard where to begin: '' at its first
--   entry, an entry's id at that one, '>' and an id at the first one that is not before it, '<' and an id backwards from the
--   first one that is not after it, '<+' from the latest
-- Reply: wall ms, then for each shard {how it continues, {the first entry that was read, the matching ones, and the last}, 1
--   if there may be more, number of entries read}; how: 0 as requested; 1 the entries from there were trimmed, so these are
--   the first ones left; 2 that entry is missing though older ones exist, since the store has lost writes, so these are the
--   first ones left; 3 not read, since the shards before had enough
-- Cost: O(entries), at most 256 of up to 5 KB, and one for each shard
--#include lib/clock.lua
--#include lib/streamid.lua
local CONTINUED, TRIMMED, LOST, UNREAD = 0, 1, 2, 3
local left, each = tonumber(ARGV[1]), tonumber(ARGV[2])
local FIELD, TEXT, OTHER = ARGV[3], ARGV[4], ARGV[5]

local function range(key, from, count) return redis.call('XRANGE', key, from, '+', 'COUNT', count) end

-- Reports whether entries from an id on were trimmed. A shard begins with an event that marks its start.
local function trimmed_before(key, id)
  local first = range(key, '-', 1)[1]
  return first and first[2][2] ~= 'system.shard_started' and is_newer(first[1], id)
end

-- Returns how the shard continues, its entries, and whether there may be more of them.
local function read(key, from, count)
  local function result(how, entries, most) return how, entries, #entries >= (most or count) and 1 or 0 end
  if from == '' then return result(CONTINUED, range(key, '-', count)) end
  local mark, id = string.match(from, '^([<>])(.*)$')
  if mark == '<' then return result(CONTINUED, redis.call('XREVRANGE', key, id, '-', 'COUNT', count)) end
  if mark == '>' then return result(trimmed_before(key, id) and TRIMMED or CONTINUED, range(key, id, count)) end
  local found = range(key, from, count + 1)
  if found[1] and found[1][1] == from then return result(CONTINUED, found, count + 1) end
  local first = range(key, '-', 1)[1]
  if not first or is_newer(first[1], from) then return result(TRIMMED, found) end
  return result(LOST, range(key, '-', count))
end

local function matches(fields)
  for j = 1, #fields, 2 do
    local name = fields[j]
    if name == FIELD and fields[j + 1] == TEXT or name == OTHER and fields[j + 1] ~= '' then return true end
  end
  return false
end

local function matching(entries)
  if FIELD == '' then return entries end
  local some = {}
  for j, entry in ipairs(entries) do
    if j == 1 or j == #entries or matches(entry[2]) then some[#some + 1] = entry end
  end
  return some
end

local reply = {now}
for i, key in ipairs(KEYS) do
  local how, entries, more = UNREAD, {}, 1
  if left > 0 then
    how, entries, more = read(key, ARGV[5 + i], math.min(left, each))
    left = left - #entries
  end
  reply[#reply + 1] = {how, matching(entries), more, #entries}
end
return reply
