-- Purpose: the entry of the mass-expiry brake for an attempt that it holds: h:<timeout ms>:<attempt>.
local function pack_spared(timeout, member) return 'h:' .. timeout .. ':' .. member end

-- Returns the timeout and the attempt; nothing for entries of other kinds.
local function unpack_spared(entry) return string.match(entry, '^h:(%d+):(.*)$') end
