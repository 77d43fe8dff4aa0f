package tracker

import (
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/store"
)

type (
	SchemaStep = store.SchemaStep
	ScriptCall = store.ScriptCall
)

const (
	MaxMissed = holdings.MaxMissed
)

var (
	SchemaSteps = store.SchemaSteps
	TellLost    = holdings.TellLost
)
