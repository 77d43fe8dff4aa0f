package schema

import (
	"github.com/lubdub-io/lubdub/tracker/model"
)

// These are the reply codes of scripts for one task; lua/lib/codes.lua has the same, and a test compares them.
const (
	CodeOK int64 = iota
	CodeMismatch
	CodeEnded
	CodeTerminal
	CodeNotFound
	CodeExists
	CodeRepeated
	CodeRefused
	CodeKeyKnown
)

// These are additional reply codes of scripts for a worker; lua/lib/workercodes.lua has the same.
const (
	CodeOffline  int64 = 20
	CodeDraining int64 = 21
)

// These are the results of scripts that take what is due.
const (
	TookNothing int64 = iota
	TookFailed
	TookRequeued
	TookReady
	TookRemoved
	TookPlaceless
	TookNeedsRun
	TookExhausted // failed, with its retries used up
)

// StateOf returns the state with a stored letter, its first one, or "" if there is none.
func StateOf(letter string) model.State {
	for _, s := range model.States {
		if letter == string(s[0]) {
			return s
		}
	}
	return ""
}

// Letters returns states as they are stored, one letter each.
func Letters(states ...model.State) string {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = s[0]
	}
	return string(b)
}
