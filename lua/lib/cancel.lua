-- Purpose: an entry of the pending cancels: grace ms, when it was delivered in shard time or '', reason as JSON string or '',
--   TAB-separated.
local function pack_cancel(grace, delivered, reason) return grace .. '\t' .. delivered .. '\t' .. reason end

-- Returns its parts as strings; nothing if no cancel is pending.
local function unpack_cancel(entry) return string.match(entry or '', '^(%d+)\t(%d*)\t(.*)$') end
