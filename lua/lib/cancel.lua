-- Purpose: an entry of the cancels that are pending: grace ms, when it was delivered in shard time or '', reason as JSON
-- string or '', TAB-separated.
local function pack_cancel(grace, delivered, reason) return grace .. '\t' .. delivered .. '\t' .. reason end

-- Returns its parts as strings; nothing where no cancel is pending.
local function unpack_cancel(entry) return string.match(entry or '', '^(%d+)\t(%d*)\t(.*)$') end
