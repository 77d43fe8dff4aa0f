-- Purpose: finds workers that are not OFFLINE and that no sweeper will ever check, because the store lost their entries in the
--   set of workers to check.
-- Guarantees: writes nothing; what it lists must be taken by a script that checks again (worker_expire.lua).
-- KEYS: 1 lubdub:{shard}:workers, 2 …:workerbeats
-- ARGV: 1 entry after which to begin, or '', 2 limit of entries to examine
-- Reply: {entry after which to continue, or '' at the end, {<scope>/<worker>}}
-- Cost: O(limit × log n)
local found, last = {}, ''
local entries = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1] == '' and '-' or '(' .. ARGV[1], '+', 'LIMIT', 0, ARGV[2])
for _, entry in ipairs(entries) do
  local scope, status, id = string.match(entry, '^([^/]+/[^/]+)/([NDFM])/(.+)$')
  if status == 'N' or status == 'D' then
    local name = scope .. '/' .. id
    if not redis.call('ZSCORE', KEYS[2], name) then found[#found + 1] = name end
  end
end
if #entries == tonumber(ARGV[2]) then last = entries[#entries] end
return {last, found}
