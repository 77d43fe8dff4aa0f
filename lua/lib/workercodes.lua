-- Purpose: further answers of scripts about a worker, mirrored once in Go (tracker/schema/codes.go).
local OFFLINE, DRAINING = 20, 21
