package stats

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// System is the state of a deployment.
type System struct {
	At       time.Time
	Replicas []Replica // by ID
	Shards   []Shard   // without those of nodes that do not respond
	Nodes    []store.NodeHealth
	// Differing are the names of settings that are not the same on all replicas.
	Differing     []string
	BrakeShare    int // percent; 0: there is no brake
	Held          int // tasks and workers that the brake holds
	Braked        []model.Scope
	ReconcileRate int   // entries per second
	Examined      int64 // entries that the reconciler has examined in the last hour
	Repaired      int64 // those of them that it has repaired
	Dropped       int64 // pending deliveries to webhooks that were dropped in the last hour
}

// Replica is a process as it reports itself.
type Replica struct {
	ID string
	Facts
	LastReport time.Time
}

// Shard is the state of a shard.
type Shard struct {
	Number       int
	Sweeper      string        // with rank 0 for it; "": no sweeper
	Overdue      time.Duration // of its oldest overdue deadline; 0: nothing is overdue
	Stopped      time.Duration // how long shard time has been paused
	OutageCredit time.Duration // outage time of the last hour that was excluded from timeouts
	Recoveries   int           // of workers, in progress
	Events       int           // in its stream
	EventsFor    time.Duration // age of the oldest of them
	OutageEnded  time.Duration // how long ago the newest of these outages ended
	Held         int           // tasks and workers that the mass-expiry brake holds
	Braked       []model.Scope // those of the tasks and workers that it holds

	sweepers []string
}

// System returns the state of the deployment. The result may be a second old and is shared: the caller must not change it.
func (s *Service) System(ctx context.Context) (*System, error) {
	ctx = s.store.Within(ctx, 0)
	is, err := answer(ctx, s.snapshots, "system", func() (*System, error) { return s.readSystem(ctx) })
	if err != nil {
		return nil, s.refused(err)
	}
	return is, nil
}

func (s *Service) readSystem(ctx context.Context) (*System, error) {
	hour, err := s.hour(ctx)
	if err != nil {
		return nil, err
	}
	is := &System{At: hour.now, BrakeShare: s.opts.BrakeShare, ReconcileRate: s.opts.ReconcileRate}
	for _, step := range hour.steps {
		is.Examined += step.Examined
		is.Repaired += step.Repaired
		is.Dropped += step.Dropped
	}
	if is.Replicas, err = s.readReplicas(ctx); err != nil {
		return nil, err
	}
	is.Differing = differing(is.Replicas)
	is.Nodes = s.store.NodesHealth(ctx)
	away := slices.ContainsFunc(is.Nodes, func(n store.NodeHealth) bool { return n.Err != nil })
	if is.Shards, err = s.readShards(ctx, away); err != nil {
		return nil, err
	}
	for _, shard := range is.Shards {
		is.Held += shard.Held
		for _, scope := range shard.Braked {
			if !slices.Contains(is.Braked, scope) {
				is.Braked = append(is.Braked, scope)
			}
		}
	}
	return is, nil
}

// readReplicas reads the reports of the live replicas.
func (s *Service) readReplicas(ctx context.Context) ([]Replica, error) {
	re, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	var ids []string
	lastReport := readFleet(re).lastReport
	for id := range lastReport {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var found []Replica
	for part := range slices.Chunk(ids, repliesAtOnce) {
		re, err := s.store.Do(ctx, "stats", s.fleetCall(part))
		if err != nil {
			return nil, err
		}
		for i, report := range readFleet(re).reports {
			r := Replica{ID: part[i], LastReport: lastReport[part[i]]}
			if json.Unmarshal([]byte(report), &r.Facts) == nil {
				found = append(found, r)
			}
		}
	}
	return found, nil
}

// differing returns the settings with different digests on some replicas. A setting that only one of two releases has does not
// differ.
func differing(replicas []Replica) (names []string) {
	first := map[string]string{}
	for _, r := range replicas {
		for name, digest := range r.Settings {
			if known, ok := first[name]; !ok {
				first[name] = digest
			} else if known != digest && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Compare compares the facts of a process, before it runs, with the reports of the running ones. It returns how many these are and
// which settings are not the same on all.
func Compare(own Facts, reports []json.RawMessage) (others int, differ []string) {
	all := []Replica{{Facts: own}}
	for _, text := range reports {
		var r Replica
		if json.Unmarshal(text, &r.Facts) == nil {
			all = append(all, r)
		}
	}
	return len(all) - 1, differing(all)
}

// readShards reads the state of all shards. away: a node is known not to respond, so its shards are left out; there must be
// others.
func (s *Service) readShards(ctx context.Context, away bool) ([]Shard, error) {
	groups := s.store.AllTogether()
	calls := store.CallEach(groups, s.shardsCall)
	s.store.DoBulk(ctx, "stats", calls)
	var all []Shard
	var silent []*store.Call
	for i, shards := range groups {
		if calls[i].Err != nil {
			continue
		}
		is, timeouts := readShards(calls[i].Reply, shards)
		for j := range is {
			is[j].Sweeper = s.opts.First(is[j].Number, is[j].sweepers)
			silent = append(silent, s.silentCall(is[j].Number, timeouts[j]))
		}
		all = append(all, is...)
	}
	s.store.DoBulk(ctx, "stats", silent)
	var found []Shard
	for i, c := range silent {
		if c.Err == nil {
			all[i].Overdue = max(all[i].Overdue, readSilent(c.Reply))
			found = append(found, all[i])
		}
	}
	if err := cmp.Or(store.FirstError(calls), store.FirstError(silent)); err != nil && (!away || len(found) == 0) {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Shard) int { return cmp.Compare(a.Number, b.Number) })
	return found, nil
}
