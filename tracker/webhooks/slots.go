package webhooks

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// slots limits the concurrent requests of one courier. It is fair: a tenant, and a webhook of a tenant, may hold a multiple of what is
// free, so that a slot is left for a tenant that holds none. Freed slots go to waiting deliveries in turn, by tenant and then by webhook.
type slots struct {
	pool  *shares.Pool
	waits *prometheus.CounterVec

	mu      sync.Mutex
	tenants []*tenantLine // in the order of service; each has a hookLine
}

type tenantLine struct {
	tenant string
	hooks  []*hookLine // in the order of service; each has a waiting delivery
}

type hookLine struct {
	holder  shares.Holder
	waiting []chan struct{} // closed when a slot is granted
}

func newSlots(count int64, waits *prometheus.CounterVec) *slots {
	return &slots{pool: shares.NewPool(count), waits: waits}
}

// take waits for a slot for a webhook. It returns false if ctx ends first; otherwise the slot must be given back.
func (s *slots) take(ctx context.Context, tenant, webhook string) bool {
	h := shares.Holder{Tenant: tenant, Token: webhook}
	granted := s.takeOrQueue(h)
	if granted == nil {
		return true
	}
	select {
	case <-granted:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leave(h, granted) {
		s.releaseLocked(h) // it was granted meanwhile
	}
	return false
}

// takeOrQueue takes a slot and returns nil, or joins the line and returns a channel that is closed when the slot is granted.
func (s *slots) takeOrQueue(h shares.Holder) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, line := s.lineOf(h)
	if line == nil {
		refused := s.pool.Take(h, 1)
		if refused == shares.Granted {
			return nil
		}
		s.waits.WithLabelValues(slotLevels[refused]).Inc()
		if t == nil {
			t = &tenantLine{tenant: h.Tenant}
			s.tenants = append(s.tenants, t)
		}
		line = &hookLine{holder: h}
		t.hooks = append(t.hooks, line)
	}
	granted := make(chan struct{})
	line.waiting = append(line.waiting, granted)
	return granted
}

// slotLevels are the names in metrics of the level whose share is used up.
var slotLevels = map[shares.Level]string{shares.Token: "webhook", shares.Tenant: "tenant", shares.Total: "total"}

func (s *slots) lineOf(h shares.Holder) (*tenantLine, *hookLine) {
	for _, t := range s.tenants {
		if t.tenant != h.Tenant {
			continue
		}
		for _, line := range t.hooks {
			if line.holder == h {
				return t, line
			}
		}
		return t, nil
	}
	return nil, nil
}

// leave removes a waiting delivery from its line. It returns false if it is not there any more.
func (s *slots) leave(h shares.Holder, granted chan struct{}) bool {
	t, line := s.lineOf(h)
	if line == nil {
		return false
	}
	i := slices.Index(line.waiting, granted)
	if i < 0 {
		return false
	}
	line.waiting = slices.Delete(line.waiting, i, i+1)
	s.tidy(t, line)
	return true
}

// tidy removes empty lines.
func (s *slots) tidy(t *tenantLine, line *hookLine) {
	if len(line.waiting) == 0 {
		t.hooks = slices.DeleteFunc(t.hooks, func(l *hookLine) bool { return l == line })
	}
	if len(t.hooks) == 0 {
		s.tenants = slices.DeleteFunc(s.tenants, func(l *tenantLine) bool { return l == t })
	}
}

func (s *slots) release(tenant, webhook string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(shares.Holder{Tenant: tenant, Token: webhook})
}

func (s *slots) releaseLocked(h shares.Holder) {
	s.pool.Release(h, 1)
	for i := 0; i < len(s.tenants) && s.pool.Used() < s.pool.Limit(); {
		t := s.tenants[i]
		line := s.grant(t)
		if line == nil {
			i++ // slots granted to others do not increase its share
			continue
		}
		s.tenants = append(slices.Delete(s.tenants, i, i+1), t) // move it behind the others, and its webhook too
		t.hooks = append(slices.DeleteFunc(t.hooks, func(l *hookLine) bool { return l == line }), line)
		s.tidy(t, line)
	}
}

// grant grants a slot to the first webhook of a tenant that may have one, and returns it; nil: none may.
func (s *slots) grant(t *tenantLine) *hookLine {
	for _, line := range t.hooks {
		switch s.pool.Take(line.holder, 1) {
		case shares.Granted:
			close(line.waiting[0])
			line.waiting = line.waiting[1:]
			return line
		case shares.Token:
		default:
			return nil
		}
	}
	return nil
}
