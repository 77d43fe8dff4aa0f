-- Purpose: the answers of scripts about one task, mirrored once in Go (tracker/schema/codes.go).
local OK, MISMATCH, ENDED, TERMINAL, NOT_FOUND, EXISTS, REPEATED, REFUSED = 0, 1, 2, 3, 4, 5, 6, 7
