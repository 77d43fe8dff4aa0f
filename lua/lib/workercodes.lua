-- Purpose: further reply codes of scripts about a worker, which tracker/schema/codes.go has too.
local OFFLINE, DRAINING = 20, 21
