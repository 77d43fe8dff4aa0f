package revocations

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Bounds of the list, which every replica keeps a copy of: about 5 MB.
const (
	MaxRevocations = 10_000 // that stand at a time, in all
	MaxOfTenant    = 1_000  // of tokens of one tenant, as one replica knows them

	// leftOver is how many must be free for each one that a tenant adds to those that it has: the fewer are free, the fewer a
	// tenant may have, so that many tenants together do not keep another one from its first ones.
	leftOver = 2

	pageSize = 1000 // that one script lists
	putBack  = 500  // that one script is given
)

// refreshInterval is the time between two reads of the list. With a round trip to Redis it must fit into the 2 s within which
// every replica heeds what was taken back.
const refreshInterval = 500 * time.Millisecond

// Options configure a Service.
type Options struct {
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service knows which tokens were taken back. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	log     *slog.Logger
	metrics *metrics
	scripts scripts

	looking sync.Mutex // one look at a time

	mu      sync.Mutex
	version string                // of the list that is known; "": none has been read
	known   map[string]Revocation // by what they name; only the passing of their time takes one away
	heed    func(all, news []Revocation)
}

// New makes the service.
func New(st *store.Store, o Options) *Service {
	return &Service{
		store: st, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts), known: map[string]Revocation{},
	}
}

// HeedRevocations has f told of all revocations that stand and which of them are new, now and after each change, one at a time.
// There is one f.
func (s *Service) Heed(f func(all, news []Revocation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heed = f
	all := s.all()
	f(all, all)
}

// Revoke takes tokens back. This replica heeds it when Revoke returns, the others do shortly after.
func (s *Service) Revoke(ctx context.Context, r Revocation) error {
	ctx = s.store.Within(ctx, 0)
	const op = "revoke"
	if of, all := s.count(r.Tenant); r.Kind != OfTenant && !s.stands(&r) {
		if most := min(MaxOfTenant, (MaxRevocations-all)/leftOver); of >= most && r.Tenant != Wildcard {
			return tooMany(op, of, "of this tenant's tokens")
		}
	}
	data, err := json.Marshal(revokedData(&r))
	if err != nil {
		return err // a map of texts and numbers
	}
	call := s.revokeCall(string(data), []Revocation{r})
	s.store.DoDurably(ctx, op, call)
	if call.Err != nil {
		return call.Err
	}
	if readRevoke(call.Reply) {
		return tooMany(op, MaxRevocations, "in all")
	}
	s.learn([]Revocation{r})
	s.log.Info("tokens were taken back", "by", model.ActorOf(ctx), "subject", nameOf(&r, OfSubject), "workerId", nameOf(&r, OfWorker),
		"tenantId", r.Tenant, "workspaceId", r.Workspace, "issuedBefore", r.IssuedBefore)
	return nil
}

func nameOf(r *Revocation, k Kind) string {
	if r.Kind == k {
		return r.Name
	}
	return ""
}

func tooMany(op string, most int, of string) error {
	return &model.Error{Code: model.Overloaded, TooMany: true, Op: op, RetryAfter: time.Minute,
		Message: fmt.Sprintf("%d revocations %s stand already, which is the most; take back all tokens of a tenant instead, "+
			"or give the servers a new signing key, with which no old token holds", most, of)}
}

// FollowRevocations looks at the list again and again until the context ends. Run it in every process that judges tokens.
// While Redis does not answer, what is known goes on.
func (s *Service) Follow(ctx context.Context) error {
	defer s.store.Contain("following revocations")
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(refreshInterval):
		}
		err := s.Refresh(ctx)
		switch {
		case err != nil && !failing:
			s.log.Warn("which tokens were taken back cannot be read; those that are known stay refused", "error", err)
		case err == nil && failing:
			s.log.Info("which tokens were taken back can be read again")
		}
		failing = err != nil
	}
}

// RefreshRevocations learns what has changed in the list, and puts back what a store has lost that this replica knows.
func (s *Service) Refresh(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	err := s.look(ctx)
	if err != nil {
		s.metrics.failures.Inc()
	}
	return err
}

func (s *Service) look(ctx context.Context) error {
	s.mu.Lock()
	known := s.version
	s.mu.Unlock()
	var first page
	listed := map[string]Revocation{}
	for skip := 0; ; {
		re, err := s.store.DoVital(s.store.Within(ctx, 0), "revocations", s.revocationsCall(known, skip))
		if err != nil {
			return err
		}
		p := readPage(re)
		if skip == 0 {
			first = p
		}
		for _, r := range p.list {
			listed[r.what()] = r
		}
		if skip += p.entries; p.entries < pageSize {
			break
		}
	}
	s.forget(first.now)
	if first.version == known {
		return nil
	}
	list := make([]Revocation, 0, len(listed))
	for _, r := range listed {
		list = append(list, r)
	}
	s.learn(list)
	if err := s.putBack(ctx, listed); err != nil {
		return err // and looks at all of it again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = first.version // what has changed since then is another one
	return nil
}

// putBack takes back anew what the store does not know any more.
func (s *Service) putBack(ctx context.Context, listed map[string]Revocation) error {
	var lost []Revocation
	s.mu.Lock()
	for what, r := range s.known {
		if is, ok := listed[what]; !ok || is.IssuedBefore.Before(r.IssuedBefore) {
			lost = append(lost, r)
		}
	}
	s.mu.Unlock()
	for len(lost) > 0 {
		n := min(len(lost), putBack)
		if _, err := s.store.Do(s.store.Within(ctx, 0), "revoke", s.revokeCall("", lost[:n])); err != nil {
			return err
		}
		lost = lost[n:]
	}
	return nil
}

// learn adds to what is known, and tells whoever heeds it.
func (s *Service) learn(list []Revocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var news []Revocation
	for _, r := range list {
		if is, ok := s.known[r.what()]; !ok || is.IssuedBefore.Before(r.IssuedBefore) {
			s.known[r.what()] = r
			news = append(news, r)
		}
	}
	s.metrics.standing.Set(float64(len(s.known)))
	if len(news) > 0 && s.heed != nil {
		s.heed(s.all(), news)
	}
}

// forget drops what says nothing any more: no token holds that it takes back. Whoever heeds it learns so with the next change.
func (s *Service) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, r := range s.known {
		if !r.stands().After(now) {
			delete(s.known, what)
		}
	}
	s.metrics.standing.Set(float64(len(s.known)))
}

// all lists what is known. The caller holds the mutex.
func (s *Service) all() []Revocation {
	all := make([]Revocation, 0, len(s.known))
	for _, r := range s.known {
		all = append(all, r)
	}
	return all
}

// stands reports whether one that names the same is known.
func (s *Service) stands(r *Revocation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[r.what()]
	return known
}

// count returns how many there are of one tenant, and in all.
func (s *Service) count(tenant string) (of, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.known {
		if r.Tenant == tenant {
			of++
		}
	}
	return of, len(s.known)
}
