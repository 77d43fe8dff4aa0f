package trackertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// mostScriptTime is what any one script may take, whatever is stored: 5 ms is meant, and a busy machine gets its share.
const mostScriptTime = 10 * time.Millisecond

// timedHarness is a harness on a Redis of its own whose scripts are measured one by one, by the CPU time of Redis, so that
// it does not matter what else the machine does.
type timedHarness struct {
	*Harness
	server *redistest.Server
	calls  func() []ScriptCall // nil until something must be short: what fills the store is not measured
}

func Timed(t *testing.T, change ...func(*tracker.Options)) *timedHarness {
	t.Helper()
	server := redistest.StartServer(t)
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	patient := func(o *tracker.Options) { o.RedisTimeout = time.Minute } // how long all takes on a busy machine is no matter here
	s := &redistest.Store{Kind: "redis", URL: server.URL(), Client: client, Clock: &redistest.Clock{}, Scripts: redistest.Scripts()}
	h := NewHarness(t, s, append([]func(*tracker.Options){patient}, change...)...)
	return &timedHarness{Harness: h, server: server}
}

// Short fails the test when a script of what is done takes too long, which it must in each of the tries that run it: what
// Redis does besides is in one of them only.
func (h *timedHarness) Short(what string, do func()) {
	h.Helper()
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
			h.Errorf("%s: %s took %v, which nobody else could use Redis in", what, name, d)
		}
	}
}

// LargestWorker returns a registration that says as much as one may.
func LargestWorker(t *testing.T) model.NewWorker {
	t.Helper()
	with := func(types, labels int) model.NewWorker {
		return NewWorker(func(n *model.NewWorker) {
			n.Types, n.Labels = []string{"a"}, map[string]string{}
			for i := range types {
				n.Types = append(n.Types, fmt.Sprintf("%0128d", i))
			}
			for i := range labels {
				n.Labels[fmt.Sprintf("%0128d", i)] = fmt.Sprintf("%0256d", i)
			}
		})
	}
	types, labels := 0, 0
	for fits := true; fits && labels < model.MaxLabels/8; {
		n := with(0, labels+1)
		if fits = n.Validate() == nil; fits {
			labels++
		}
	}
	for fits := true; fits && types < model.MaxTypes-1; {
		n := with(types+1, labels)
		if fits = n.Validate() == nil; fits {
			types++
		}
	}
	return with(types, labels)
}
