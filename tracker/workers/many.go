package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Act is an operation on many workers at once, other than a drain.
type Act string

const (
	Cordon   Act = "cordon"
	Uncordon Act = "uncordon"
	Resume   Act = "resume"
	Retire   Act = "offline" // by an operator, with a hold: what they hold is lost
)

// Acted is the result of an act on many workers.
type Acted struct {
	Matched int      // workers that the selector matches and that are not OFFLINE
	Done    int      // of these, those that are in the requested state
	Workers []string // ids of those that match
}

// NoWorkersMatch is the code for an act whose selector matches no worker.
const NoWorkersMatch model.Code = "no_workers_match"

func noWorkersMatch(op string) error {
	return &model.Error{Code: NoWorkersMatch, Op: op,
		Message: "no worker that is ONLINE or DRAINING matches; check the selector, tenantId and workspaceId"}
}

// MaxSilentFor bounds WorkerFilter.SilentFor in a selector.
const MaxSilentFor = 30 * 24 * time.Hour

// ValidateSelector checks a filter for an act on many workers; errors name its fields as the API does.
func (f *WorkerFilter) ValidateSelector() error {
	for _, id := range []struct{ field, value string }{{"selector.queue", f.Queue}, {"selector.machineId", f.MachineID}} {
		if id.value == "" {
			continue
		}
		if err := model.CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if err := model.CheckText("selector.version", f.Version, model.MaxVersionBytes); err != nil {
		return err
	}
	if f.SilentFor < 0 || f.SilentFor > MaxSilentFor {
		return model.Invalidf("silentForMs", "is %d; use 1 to %d, or omit it", model.Millis(f.SilentFor), model.Millis(MaxSilentFor))
	}
	return model.CheckLabels("selector.labels", f.Labels)
}

// named reads the workers that a selector matches and that are not OFFLINE, or for Resume also those that are held offline.
func (s *operations) named(ctx context.Context, op string, f *WorkerFilter) ([]*model.Worker, error) {
	statuses := []model.WorkerStatus{model.Online, model.Draining}
	if op == string(Resume) {
		statuses = append(statuses, model.Offline)
	}
	refs, err := s.reader.IDs(ctx, op, f.Scope, statuses)
	if err != nil {
		return nil, err
	}
	return s.reader.sift(ctx, op, refs, func(w *model.Worker) bool {
		return (w.Status != model.Offline || op == string(Resume) && w.Hold != nil) && f.matches(w)
	})
}

// ActOnMany applies an act to every worker that a filter matches and that is not OFFLINE. It fails if the filter matches none,
// except for Retire: a repeated Retire may find all of them OFFLINE. With dryRun it only counts. Repeating the call completes one
// that failed halfway and leaves workers in the requested state unchanged.
func (s *operations) ActOnMany(ctx context.Context, act Act, f WorkerFilter, reason string, dryRun bool) (*Acted, error) {
	ctx, op := s.store.Within(ctx, 0), string(act)
	workers, err := s.named(ctx, op, &f)
	if err != nil {
		return nil, err
	}
	if len(workers) == 0 && !dryRun && act != Retire {
		return nil, noWorkersMatch(op)
	}
	result := &Acted{Matched: len(workers)}
	var todo, done []*model.Worker
	for _, w := range workers {
		result.Workers = append(result.Workers, w.ID)
		if act.isDone(w) {
			done = append(done, w)
		} else {
			todo = append(todo, w)
		}
	}
	if !dryRun {
		changed, err := s.changeAll(ctx, act, todo, &f, reason)
		if err != nil {
			return nil, err
		}
		done = append(done, changed...)
		if act == Cordon {
			if err := s.unpinFrom(ctx, op, done); err != nil {
				return nil, err
			}
		}
	}
	result.Done = len(done)
	return result, nil
}

// isDone reports whether a worker that is not OFFLINE is in the requested state.
func (a Act) isDone(w *model.Worker) bool {
	switch a {
	case Cordon:
		return w.Cordon != nil
	case Uncordon:
		return w.Cordon == nil
	case Resume:
		return w.Status == model.Online
	}
	return false
}

// changedAtOnce is how many workers are changed in one batch, since each call has the names of all keys of its worker.
const changedAtOnce = 500

// changeAll changes workers and returns those that are in the requested state afterwards. It leaves out workers that are gone, and
// those that were to be OFFLINE for silence and have sent a heartbeat since.
func (s *operations) changeAll(
	ctx context.Context, act Act, workers []*model.Worker, f *WorkerFilter, reason string,
) (changed []*model.Worker, err error) {
	for part := range slices.Chunk(workers, changedAtOnce) {
		calls := store.CallEach(part, func(w *model.Worker) *store.Call { return s.actCall(act, s.reader.refOf(w), f, reason) })
		s.store.DoAll(ctx, string(act), calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		for i, c := range calls {
			code := readStatus(c.Reply).code
			if code == schema.CodeOK || code == schema.CodeRepeated || code == schema.CodeOffline && act == Retire {
				changed = append(changed, part[i])
			}
		}
	}
	if act == Retire {
		s.recoverSome(ctx, changed)
	}
	return changed, nil
}

func (s *operations) actCall(act Act, r *schema.WorkerRef, f *WorkerFilter, reason string) *store.Call {
	switch act {
	case Cordon, Uncordon:
		return s.scripts.cordonCall(r, act == Cordon, reason)
	case Resume:
		return s.scripts.statusCall(r, statusArgs{action: resume, reason: reason})
	}
	return s.scripts.statusCall(r, statusArgs{action: retire, end: model.WorkerForced, loss: true, reason: reason, silentFor: f.SilentFor,
		hold: !f.withMachine || r.Machine == r.ID}) // no worker can register on a machine that is named after its only worker
}

// recoveredNow is how many workers are recovered by the call that ended them; sweepers recover the others.
const recoveredNow = 20

func (s *operations) recoverSome(ctx context.Context, ended []*model.Worker) {
	ids := make([]string, 0, recoveredNow)
	for _, w := range ended[:min(len(ended), recoveredNow)] {
		ids = append(ids, w.ID)
	}
	if len(ids) > 0 {
		s.holdings.RecoverNow(ctx, ended[0].Scope, ids...)
	}
}
