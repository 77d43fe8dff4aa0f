// Package deployment reads the state of a whole deployment, as its servers report it.
package deployment

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"sync"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// State is the state of a deployment.
type State struct {
	Health *v1.Health
	System *v1.System
	Stats  *v1.Stats

	Silent     []resource.Entry[v1.Worker] // first some that are LOST, then some that are LATE
	MoreSilent int                         // further ones, which are not in Silent
	Verdicts   *v1.VerdictCounts

	mu  sync.Mutex // answers arrive concurrently
	Raw map[string]json.RawMessage

	Unread   error // why some of it is unknown
	Responds bool  // Redis does; if not, only Health and System are known
}

// Findings returns the server's findings, in its order. Before them is one that it cannot report itself, if some of its answers are
// missing.
func (st *State) Findings() (all []v1.Finding) {
	if st.Unread != nil {
		all = append(all, NewFinding("answers", v1.SeverityFail, "Some answers are missing: "+st.Unread.Error(),
			"retry; check Redis with `lubdub doctor`, and docs/runbooks.md"))
	}
	switch {
	case st.System != nil:
		all = append(all, ServerFindings(st.System)...)
	case st.Health != nil && st.Health.Status != "ok":
		all = append(all, NotReady(st.Health))
	}
	return all
}

// Read reads all of it concurrently.
func Read(ctx context.Context, s *session.Session) (*State, error) {
	st := &State{Raw: map[string]json.RawMessage{}}
	var lost, late *resource.Page[v1.Worker]
	reads := []func() error{
		func() (err error) { st.Health, err = ReadHealth(ctx, s); return err },
		func() error { return st.loadSystem(ctx, s) },
		func() error { return st.load(ctx, s, "stats", "/v1/stats", nil, &st.Stats) },
		func() error {
			by := url.Values{"by": {"reason,machineId,version,queue"}}
			return st.load(ctx, s, "verdicts", "/v1/stats/verdicts", by, &st.Verdicts)
		},
		func() error { return st.load(ctx, s, "queues", resource.Queues.Path, nil, new(v1.QueueList)) },
		func() (err error) { lost, err = silentWorkers(ctx, s, "LOST"); return err },
		func() (err error) { late, err = silentWorkers(ctx, s, "LATE"); return err },
	}
	errs := make([]error, len(reads))
	var wait sync.WaitGroup
	for i, read := range reads {
		wait.Go(func() { errs[i] = read() })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil && (i == 0 || exit.Code(err) != exit.Unavailable) {
			return nil, err
		}
		st.Unread = cmp.Or(st.Unread, err) // the server answers, but cannot reach its store: that is reported
	}
	if st.System != nil && !st.Responds {
		st.Unread = nil // the findings of the server are more specific
		return st, nil
	}
	for _, p := range []*resource.Page[v1.Worker]{lost, late} {
		if p != nil {
			st.Silent = append(st.Silent, p.Entries...)
			st.MoreSilent += *p.Total - len(p.Entries)
		}
	}
	return st, nil
}

func (st *State) loadSystem(ctx context.Context, s *session.Session) error {
	raw, is, responds, err := ReadSystem(ctx, s)
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.Raw["system"], st.System, st.Responds = raw, is, responds
	return nil
}

func (st *State) load(ctx context.Context, s *session.Session, name, path string, q url.Values, into any) error {
	raw, err := s.Do(ctx, client.Request{Path: path, Query: q})
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.Raw[name] = raw
	return json.Unmarshal(raw, into)
}

// silentWorkers returns up to 5 ONLINE and then up to 5 DRAINING workers of a liveness, of each the longest silent first. Total counts all.
func silentWorkers(ctx context.Context, s *session.Session, liveness string) (*resource.Page[v1.Worker], error) {
	sum := &resource.Page[v1.Worker]{Total: new(int)}
	for _, status := range []string{"ONLINE", "DRAINING"} {
		q := url.Values{"liveness": {liveness}, "status": {status}, "sort": {"lastHeartbeat"}, "pageSize": {"5"}}
		p, err := resource.Workers.ReadPage(ctx, s, q)
		if err != nil {
			return nil, err
		}
		sum.Entries = append(sum.Entries, p.Entries...)
		if p.Total != nil {
			*sum.Total += *p.Total
		}
	}
	return sum, nil
}
