-- Purpose: an entry of a shard's list of outages: shard time at the end, wall ms at the beginning, ms that were lost and
-- ms that were not, TAB-separated.
local function pack_outage(L, from, lost, ran) return string.format('%.0f\t%.0f\t%.0f\t%.0f', L, from, lost, ran) end

-- Returns its parts as strings; nothing for the sentinel.
local function unpack_outage(entry) return string.match(entry or '', '^(%d+)\t(%d+)\t(%d+)\t(%d+)$') end
