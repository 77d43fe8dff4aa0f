package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// The stored format has a version, so that two releases do not misread each other's records. The store contains its version and the
// oldest version that a program must know to run on it; a program knows all versions up to the number of its steps. docs/upgrades.md
// describes what follows for operators and developers.

// schemaStep upgrades a store from one version of the stored format to the next.
type schemaStep struct {
	name string
	// least is the oldest version that programs must know to run on the store after this step. It is an earlier version than the step's
	// own: programs of the previous release must be able to continue.
	least int
	// run does the work; nil: records stay as they are. It runs under load, in several replicas at once, and again from the beginning
	// after a failure or a loss of the store, so it must not harm what is already there. It walks over long collections in pieces.
	run func(ctx context.Context, s *format) error
}

// schemaSteps lead from version 0, which is not recorded in the store, to the version of this program. Never change a step that was
// released; append a new one.
var schemaSteps = []schemaStep{
	{name: "say the version"},
	{name: "name the deployment", run: func(ctx context.Context, s *format) error { return s.nameDeployment(ctx) }},
	{name: "list what queues have", run: func(ctx context.Context, s *format) error { return s.listByQueue(ctx) }},
}

// format is the version of the stored format, and the identifier of the deployment.
type format struct {
	servers   *servers
	keyspace  *Keyspace
	runner    *runner
	scripts   *scripts
	breakdown *breakdown
	log       *slog.Logger

	founded    bool                   // this process was the first to use the store
	deployment atomic.Pointer[string] // the identifier as last read
}

// Founded reports whether this process was the first to use the store.
func (s *format) Founded() bool { return s.founded }

// storedSchema is the version that the store contains.
type storedSchema struct {
	lost    bool // the store is empty; the next beat founds it again
	version int
	least   int // the oldest version that a program must know
}

// settleSchema upgrades an older store at the start. It returns an error when this program cannot read the store.
func (s *format) settleSchema(ctx context.Context, steps []schemaStep) error {
	is, err := s.readSchema(ctx)
	if err != nil {
		return err
	}
	if is.least > len(steps) {
		return s.tooNew(is, len(steps))
	}
	if is.version > len(steps) {
		s.log.Info("the store is in a newer version of the stored format, which this one may run on",
			"version", is.version, "known", len(steps))
	}
	return s.bringForward(ctx, steps, is.version, s.founded)
}

func (s *format) readSchema(ctx context.Context) (is storedSchema, err error) {
	fields, err := s.servers.client().HMGet(ctx, schema.MetaKey, "shards", "schema", "least").Result()
	if err != nil {
		return is, fmt.Errorf("cannot read the version of the stored format: %w", err)
	}
	is.lost = fields[0] == nil
	for i, to := range []*int{&is.version, &is.least} {
		text, ok := fields[1+i].(string)
		if !ok {
			continue // a release before version 1 wrote the store
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
			return is, fmt.Errorf("the version of the stored format is %.20q, which is no number; another program may have written %s",
				text, schema.MetaKey)
		}
	}
	return is, nil
}

func (s *format) tooNew(is storedSchema, known int) error {
	return fmt.Errorf("the store at %s is in version %d of the stored format, which only a Lubdub that knows version %d or newer may use, "+
		"and this one knows %d: run the release that ran on it last, or a newer one; to go back to this one, restore a backup of Redis "+
		"from before the upgrade (docs/upgrades.md)",
		redactURL(s.servers.opts.URL), is.version, is.least, known)
}

// bringForward runs the remaining steps, and logs them unless the store is new. Other replicas may run the same steps at the same time.
func (s *format) bringForward(ctx context.Context, steps []schemaStep, version int, isNew bool) error {
	for version < len(steps) {
		step := steps[version]
		if step.run != nil {
			if err := step.run(ctx, s); err != nil {
				return fmt.Errorf("bringing the store to version %d of the stored format (%s): %w", version+1, step.name, err)
			}
		}
		re, err := s.runner.Do(ctx, "open", s.scripts.schemaCall(version, version+1, step.least))
		if err != nil {
			return fmt.Errorf("bringing the store to version %d of the stored format (%s): %w", version+1, step.name, err)
		}
		now, there := readSchemaCall(re)
		if !there {
			return errors.New("the store was emptied while it was brought to a newer version of the stored format; start again")
		}
		if !isNew {
			s.log.Info("the store was brought forward", "version", version+1, "step", step.name)
		}
		version = now
	}
	return nil
}

// schemaCheckInterval is the time between two checks of the version.
const schemaCheckInterval = time.Second

// watchSchema checks the version until ctx ends. A store that was lost, or founded again by an older release, is upgraded again. When a
// newer release has made the store unreadable to this one, this process ends.
func (s *format) watchSchema(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(schemaCheckInterval):
			s.checkSchema(ctx, schemaSteps)
		}
	}
}

// checkSchema checks once. After an error the next check tries again.
func (s *format) checkSchema(ctx context.Context, steps []schemaStep) {
	is, err := s.readSchema(ctx)
	switch {
	case err != nil || is.lost:
	case is.least > len(steps):
		s.breakdown.giveUp(s.tooNew(is, len(steps)),
			"a newer release has changed what is stored, and this replica, which does not know it, ends; send this to another one")
	case s.bringForward(ctx, steps, is.version, is.version == 0) == nil:
		_ = s.learnDeployment(ctx)
	}
}
