-- Purpose: an attempt that the mass expiry brake spares, as it remembers it: h:<timeout ms>:<attempt>.
local function pack_spared(timeout, member) return 'h:' .. timeout .. ':' .. member end

-- Returns the timeout and the attempt; nothing for entries about anything else.
local function unpack_spared(entry) return string.match(entry, '^h:(%d+):(.*)$') end
