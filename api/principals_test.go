package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// boundedResource is something of a replica, or of a deployment, of which there is only so much.
type boundedResource struct {
	name string
	// take has a client take one unit and keep it, and reports whether it was served. bearer is "" for a stranger.
	take func(l *live, bearer string) bool
	// bearer makes a token of a tenant by a name.
	bearer    func(l *live, tenant, name string) string
	size      int // of the resource, in this test
	strangers int // how many units clients without a valid token may get together
}

func viewerOf(l *live, tenant, name string) string {
	return l.controlOf(token.Control{Role: roleViewer, Tenant: tenant, Workspace: "prod", Subject: name, TTL: time.Hour})
}

// principalOf returns who shows a token; nil: it is not valid.
func (l *live) principalOf(bearer string) *httpapi.Principal {
	return l.s.api.Bearer([]byte(bearer), l.now())
}

// boundedResources are the bounded resources that clients of the API can fill. Add a row for each new one. Resources that are not listed
// refuse no request, or are in the store: verified tokens (api/token), revocations (tracker/revocations).
var boundedResources = []boundedResource{
	{
		name: "event streams", size: 16, bearer: viewerOf,
		take: func(l *live, bearer string) bool {
			who := l.principalOf(bearer)
			if who == nil || l.s.events.Streams.Take(who.Holder(), 1) != shares.Granted {
				return l.do("GET", "/v1/events", bearer, "", "Accept", "text/event-stream").status == 200
			}
			l.s.events.Streams.Release(who.Holder(), 1)
			l.stream(bearer, "")
			return true
		},
	},
	{
		name: "requests of the control plane", size: 16, bearer: viewerOf,
		take: func(l *live, bearer string) bool {
			if l.do("GET", "/v1/queues", bearer, "").status != 200 {
				return false
			}
			return l.s.api.Control.Enter(l.principalOf(bearer)) == nil // takes a place like a request that stays under way
		},
	},
	{
		name: "waiting claims", size: 16,
		bearer: func(l *live, tenant, name string) string {
			text, _, err := httpapi.MintWorker(l.keys, model.Scope{Tenant: tenant, Workspace: "prod"},
				&workers.Registered{WorkerID: name, MachineID: "m1", Queue: "q"}, l.now())
			if err != nil {
				l.t.Fatal(err)
			}
			return text
		},
		take: func(l *live, bearer string) bool {
			who := l.principalOf(bearer)
			if who == nil {
				return l.do("POST", "/v1/queues/q/claim", bearer, `{"waitMs":60000}`).status == 200
			}
			return l.s.queues.Waiting.Take(who.Holder(), 1) == shares.Granted
		},
	},
	{
		name: "awaited tasks", size: 16, bearer: viewerOf,
		take: func(l *live, bearer string) bool {
			who := l.principalOf(bearer)
			if who == nil || l.s.tasks.Awaited.Take(who.Holder(), 1) != shares.Granted {
				return l.do("POST", "/v1/tasks:wait", bearer, `{"taskIds":["none"],"waitMs":60000}`).status == 200
			}
			return true
		},
	},
}

// Each bounded resource is filled as far as it goes by clients without a valid token, by one token, and by a tenant with many
// tokens. Whatever they have taken, another tenant is served.
func TestNoClientExhaustsABoundedResource(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	for _, r := range boundedResources {
		fill := map[string]func(l *live) int{
			"strangers": func(l *live) (n int) {
				for range r.size + 1 {
					if r.take(l, "") || r.take(l, "junk") {
						n++
					}
				}
				if n > r.strangers {
					t.Errorf("%s: strangers got %d units, want %d at most", r.name, n, r.strangers)
				}
				return n
			},
			"one token": func(l *live) (n int) {
				for bearer := r.bearer(l, "greedy", "one"); n < r.size && r.take(l, bearer); {
					n++
				}
				return n
			},
			"one tenant": func(l *live) (n int) {
				for i := range 2 * r.size {
					if r.take(l, r.bearer(l, "greedy", fmt.Sprint("token", i))) {
						n++
					}
				}
				return n
			},
		}
		for name, fill := range fill {
			t.Run(r.name+" "+name, func(t *testing.T) {
				inMemory(t, func(t *testing.T, l *live) {
					l.s.api.Control.Places, l.s.queues.Waiting = shares.NewPool(16), shares.NewPool(16)
					l.s.events.Streams, l.s.tasks.Awaited = shares.NewPool(16), shares.NewPool(16)
					got := fill(l)
					if got >= r.size {
						t.Errorf("%d of %d units are taken", got, r.size)
					}
					if !r.take(l, r.bearer(l, "other", "one")) {
						t.Errorf("with %d of %d units taken, another tenant is refused", got, r.size)
					}
				})
			})
		}
	}
}
