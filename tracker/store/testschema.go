package store

import (
	"context"
)

// SchemaStep is one entry of a chain of steps that a test makes up.
type SchemaStep struct {
	Name  string
	Least int
	Run   func() error // nil: the records stay as they are
}

func chain(steps []SchemaStep) []schemaStep {
	var made []schemaStep
	for _, s := range steps {
		made = append(made, schemaStep{name: s.Name, least: s.Least})
		if s.Run != nil {
			made[len(made)-1].run = func(context.Context, *Store) error { return s.Run() }
		}
	}
	return made
}

// SchemaSteps are those of this program.
func SchemaSteps() (names []string, least []int) {
	for _, s := range schemaSteps {
		names, least = append(names, s.name), append(least, s.least)
	}
	return names, least
}

// SettleSchema does what Open does in a program whose chain of steps is this.
func (s *Store) SettleSchema(ctx context.Context, steps []SchemaStep) error {
	return s.settleSchema(ctx, chain(steps))
}

// LookAtSchema looks once at the version, as a running program does every second.
func (s *Store) LookAtSchema() { s.lookAtSchema(context.Background(), schemaSteps) }
