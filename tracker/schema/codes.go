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

// scheduledLetter is that of SCHEDULED in the index; the record of such a task has it as QUEUED (lua/lib/task.lua).
const scheduledLetter = 'W'

// letterOf returns the stored letter of a state, its first one but for SCHEDULED.
func letterOf(s model.State) byte {
	if s == model.Scheduled {
		return scheduledLetter
	}
	return s[0]
}

// StateOf returns the state with a stored letter, or "" if no state has it.
func StateOf(letter string) model.State {
	for _, s := range model.States {
		if letter == string(letterOf(s)) {
			return s
		}
	}
	return ""
}

// Letters returns states as they are stored, one letter each.
func Letters(states ...model.State) string {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = letterOf(s)
	}
	return string(b)
}
