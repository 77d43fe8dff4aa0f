package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// mostScriptTime is what any one script may take, whatever is stored: 5 ms is meant, and a busy machine gets its share.
const mostScriptTime = 10 * time.Millisecond

// timed is a harness on a Redis of its own that keeps how long each script took.
func timed(t *testing.T, change ...func(*tracker.Options)) *harness {
	t.Helper()
	server := redistest.StartServer(t, "--slowlog-log-slower-than", "2000", "--slowlog-max-len", "10000")
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	return newHarness(t, &redistest.Store{Kind: "redis", URL: server.URL(), Client: client, Clock: &redistest.Clock{}, Scripts: redistest.Scripts()}, change...)
}

// short fails the test when a script of what is done takes too long, which it must in each of some tries: what the
// machine was busy with is in one of them only.
func (h *harness) short(what string, do func()) {
	h.Helper()
	names := map[string]string{}
	for _, name := range h.store.Scripts.Names() {
		names[h.store.Scripts.Get(name).SHA] = name
	}
	longest := map[string]time.Duration{}
	for try := range 6 {
		if err := h.store.Client.Do(h.ctx, "slowlog", "reset").Err(); err != nil {
			h.Fatal(err)
		}
		do()
		logs, err := h.store.Client.SlowLogGet(h.ctx, -1).Result()
		if err != nil {
			h.Fatal(err)
		}
		took := map[string]time.Duration{}
		for _, l := range logs {
			if len(l.Args) > 1 && names[l.Args[1]] != "" {
				name := names[l.Args[1]]
				took[name] = max(took[name], l.Duration)
			}
		}
		if try == 0 {
			longest = took
			continue
		}
		for name := range longest {
			longest[name] = min(longest[name], took[name])
		}
	}
	for name, d := range longest {
		h.Logf("%s: %s took %v", what, name, d)
		if d > mostScriptTime {
			h.Errorf("%s: %s took %v, which nobody else could use Redis in", what, name, d)
		}
	}
}

// largestWorker gives a registration that says as much as one may.
func largestWorker(t *testing.T) tracker.NewWorker {
	t.Helper()
	with := func(types, labels int) tracker.NewWorker {
		return newWorker(func(n *tracker.NewWorker) {
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
	for fits := true; fits && labels < tracker.MaxLabels/8; {
		n := with(0, labels+1)
		if fits = n.Validate() == nil; fits {
			labels++
		}
	}
	for fits := true; fits && types < tracker.MaxTypes-1; {
		n := with(types+1, labels)
		if fits = n.Validate() == nil; fits {
			types++
		}
	}
	return with(types, labels)
}
