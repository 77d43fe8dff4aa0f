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

// These limit the list, of which every replica keeps a copy: about 5 MB.
const (
	MaxRevocations = 10_000 // in effect at a time, in total
	MaxOfTenant    = 1_000  // in effect for tokens of one tenant, as one replica knows them

	// freePerOwn is how many entries must be free for each one that a tenant has. When few are free, a tenant may have fewer, so that many
	// tenants together cannot prevent another tenant's first revocations.
	freePerOwn = 2

	pageSize = 1000 // entries that one script lists
	restored = 500  // entries that one script stores again
)

// refreshInterval is the time between two reads of the list. With a round trip to Redis it must be below 2 s, within which every replica
// applies a revocation.
const refreshInterval = 500 * time.Millisecond

// Options configure a Service.
type Options struct {
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Service manages revocations. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	log     *slog.Logger
	metrics *metrics
	scripts scripts

	refreshing sync.Mutex // serialises reads of the list

	mu         sync.Mutex
	version    string                // of the known list; "": none was read
	known      map[string]Revocation // by key; only expiry removes an entry
	subscriber func(all, news []Revocation)
}

// New returns a service.
func New(st *store.Store, o Options) *Service {
	return &Service{
		store: st, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts), known: map[string]Revocation{},
	}
}

// Subscribe registers f, which is called at once and after each change, with all revocations in effect and with those that are new; calls
// do not overlap. A second subscriber replaces the first.
func (s *Service) Subscribe(f func(all, news []Revocation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriber = f
	all := s.all()
	f(all, all)
}

// Revoke stores a revocation. This replica applies it when Revoke returns, the others shortly after. It fails when there are too many
// revocations or the write is not confirmed.
func (s *Service) Revoke(ctx context.Context, r Revocation) error {
	ctx = s.store.Within(ctx, 0)
	const op = "revoke"
	if of, all := s.count(r.Tenant); r.Kind != OfTenant && !s.isKnown(&r) {
		if most := min(MaxOfTenant, (MaxRevocations-all)/freePerOwn); of >= most && r.Tenant != Wildcard {
			return tooMany(op, of, "of this tenant's tokens")
		}
	}
	data, err := json.Marshal(revokedData(&r))
	if err != nil {
		return err // cannot happen for a map of strings and numbers
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
	s.log.Info("tokens were revoked", "by", model.ActorOf(ctx), "subject", nameOf(&r, OfSubject), "workerId", nameOf(&r, OfWorker),
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
		Message: fmt.Sprintf("The limit of %d revocations %s is reached. Revoke all tokens of the tenant instead, which also stops its "+
			"workers, or replace the signing key and remove the old one, which invalidates all tokens", most, of)}
}

// Follow reads the list repeatedly until the context ends. Every process that checks tokens must run it. While Redis does not respond,
// the known revocations stay in effect.
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
			s.log.Warn("the list of revoked tokens cannot be read; tokens on the last copy stay rejected", "error", err)
		case err == nil && failing:
			s.log.Info("the list of revoked tokens can be read again")
		}
		failing = err != nil
	}
}

// Refresh reads the list in Redis, applies its changes, and stores again what Redis has lost. It fails when Redis does not respond.
func (s *Service) Refresh(ctx context.Context) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	err := s.readList(ctx)
	if err != nil {
		s.metrics.failures.Inc()
	}
	return err
}

func (s *Service) readList(ctx context.Context) error {
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
			listed[r.key()] = r
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
	if err := s.restore(ctx, listed); err != nil {
		return err // the next read starts again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = first.version // later changes have another version
	return nil
}

// restore stores known revocations again that the store has lost.
func (s *Service) restore(ctx context.Context, listed map[string]Revocation) error {
	var lost []Revocation
	s.mu.Lock()
	for key, r := range s.known {
		if is, ok := listed[key]; !ok || is.IssuedBefore.Before(r.IssuedBefore) {
			lost = append(lost, r)
		}
	}
	s.mu.Unlock()
	for len(lost) > 0 {
		n := min(len(lost), restored)
		if _, err := s.store.Do(s.store.Within(ctx, 0), "revoke", s.revokeCall("", lost[:n])); err != nil {
			return err
		}
		lost = lost[n:]
	}
	return nil
}

// learn adds revocations to the known ones, and passes the new ones to the subscriber.
func (s *Service) learn(list []Revocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var news []Revocation
	for _, r := range list {
		if is, ok := s.known[r.key()]; !ok || is.IssuedBefore.Before(r.IssuedBefore) {
			s.known[r.key()] = r
			news = append(news, r)
		}
	}
	s.metrics.standing.Set(float64(len(s.known)))
	if len(news) > 0 && s.subscriber != nil {
		s.subscriber(s.all(), news)
	}
}

// forget removes revocations whose tokens have all expired. The subscriber is not called for that.
func (s *Service) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.known {
		if !r.expiresAt().After(now) {
			delete(s.known, key)
		}
	}
	s.metrics.standing.Set(float64(len(s.known)))
}

// all returns all known revocations. The caller holds the mutex.
func (s *Service) all() []Revocation {
	all := make([]Revocation, 0, len(s.known))
	for _, r := range s.known {
		all = append(all, r)
	}
	return all
}

// isKnown reports whether a revocation with the same key is known.
func (s *Service) isKnown(r *Revocation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[r.key()]
	return known
}

// count returns the number of revocations of one tenant, and in total.
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
