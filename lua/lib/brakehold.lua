-- Purpose: the entry of the mass-expiry brake for an attempt that it holds: h:<timeout ms>:<attempt>.
local function pack_brake_hold(timeout, member) return 'h:' .. timeout .. ':' .. member end

-- Returns the timeout and the attempt; nothing for entries of other kinds.
local function unpack_brake_hold(entry) return string.match(entry, '^h:(%d+):(.*)$') end
