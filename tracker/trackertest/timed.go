package trackertest

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
)

// mostScriptTime limits the time of any script, whatever is stored: 5 ms plus a margin for a busy host.
const mostScriptTime = 10 * time.Millisecond

// timedHarness is a harness on its own Redis whose scripts are measured one by one in CPU time of Redis, so that other load on the host
// does not matter.
type timedHarness struct {
	*Harness
	server *redistest.Server
	calls  func() []ScriptCall // nil until the first measurement: filling the store is not measured
}

func Timed(t *testing.T, change ...func(*tracker.Options)) *timedHarness {
	t.Helper()
	server := redistest.StartServer(t)
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	patient := func(o *tracker.Options) { o.RedisTimeout = time.Minute } // the total time on a busy host does not matter here
	s := &redistest.Store{Kind: "redis", URL: server.URL(), Client: client, Clock: &redistest.Clock{}, Scripts: redistest.Scripts()}
	h := NewHarness(t, s, append([]func(*tracker.Options){patient}, change...)...)
	return &timedHarness{Harness: h, server: server}
}

// Short fails the test when a script of `do` takes too long in each of the tries that run it: other work of Redis affects only one of
// them.
func (h *timedHarness) Short(what string, do func()) {
	h.Helper()
	testenv.MeasuresScripts(h)
	if h.calls == nil {
		h.calls = MeasureCalls(h.Tracker, func() time.Duration { return h.server.CPU(h) }, nil)
	}
	longest := map[string]time.Duration{}
	for range 6 {
		before := len(h.calls())
		do()
		took := map[string]time.Duration{}
		for _, c := range h.calls()[before:] {
			took[c.Script] = max(took[c.Script], c.Took)
		}
		for name, d := range took {
			if least, ran := longest[name]; ran {
				d = min(d, least)
			}
			longest[name] = d
		}
	}
	if len(longest) == 0 {
		h.Errorf("%s: no script was measured", what)
	}
	for name, d := range longest {
		h.Logf("%s: %s took %v", what, name, d)
		if d > mostScriptTime {
			h.Errorf("%s: %s took %v and blocked Redis for as long", what, name, d)
		}
	}
}
