package tracker_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// check completes the histories with the events, and compares each with the model.
func (h *histories) check() {
	c := h.redis.Client()
	defer func() { _ = c.Close() }()
	h.addEvents(trackertest.StoredEvents(h.T, c, 2))
	var next, wrong, ops int // the first few wrong ones are enough to read
	const maxReported = 3
	var mu sync.Mutex
	var checking sync.WaitGroup
	for range 2 {
		checking.Go(func() {
			for {
				mu.Lock()
				i, bad := next, wrong
				next++
				mu.Unlock()
				if i >= len(h.tasks) || bad >= maxReported {
					return
				}
				ok := h.checkOne(h.tasks[i])
				mu.Lock()
				ops += len(h.tasks[i].ops)
				if !ok {
					wrong++
				}
				mu.Unlock()
			}
		})
	}
	checking.Wait()
	h.report(ops, wrong)
}

// addEvents adds Lubdub's own verdicts, and when queued tasks were dispatched.
func (h *histories) addEvents(events []trackertest.StoredEvent) {
	tasks := map[string]*historyTask{}
	for _, k := range h.tasks {
		tasks[k.id] = k
	}
	zombies, dispatched, begun := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, e := range events {
		if e.Type == "task.started" && e.By != "" { // by the worker's claim; callbacks have no actor here
			begun[fmt.Sprintf("%s#%d", e.Subject, e.Attempt)] = true
		}
	}
	whole := 0
	for _, e := range events {
		if e.Type == "system.shard_started" {
			whole++
		}
		k := tasks[e.Subject]
		if k == nil {
			continue
		}
		s := step{Attempt: e.Attempt, Reason: e.Data.Reason, At: e.AtMs * int64(time.Millisecond)}
		own := e.Data.Reason != "" && e.Data.Reason != model.WorkerReported && e.Data.Reason != "SUPERSEDED"
		var t stepResult
		switch {
		case e.Type == "task.zombie":
			zombies[k.id]++
			continue
		case e.Type == "task.failed" && own:
			s.What = "verdict"
		case e.Type == "task.retrying" && own && e.Data.NextAttemptAtMs > e.AtMs: // a requested one is ready at once
			s.What, t.Retry = "verdict", true
		case e.Type == "task.dispatched" && k.queue:
			name := fmt.Sprintf("%s#%d", k.id, e.Attempt)
			s.What, s.Starts, t.Attempt = "dispatch", begun[name], e.Attempt
			dispatched[name] = e.Worker
		default:
			continue
		}
		if s.Reason == model.HeartbeatTimeout {
			zombies[k.id]--
		}
		h.answers[strings.TrimSpace(s.What+" "+string(s.Reason))]++
		k.ops = append(k.ops, porcupine.Operation{ClientId: historyClients, Input: s, Output: t, Call: s.At, Return: s.At + clockSlack})
	}
	if whole != h.replicas[0].Store.Shards() {
		h.Fatal("the streams were trimmed: let a round be shorter")
	}
	for id, n := range zombies {
		if n != 0 {
			h.Errorf("%s: %d events task.zombie too many", id, n)
		}
	}
	for name, worker := range h.claimed {
		if dispatched[name] != worker {
			h.Errorf("%s was handed to %s; its event has %q", name, worker, dispatched[name])
		}
	}
}

func (h *histories) checkOne(k *historyTask) bool {
	rules := historyRules
	rules.queue = k.queue
	model := rules.model()
	result, info := porcupine.CheckOperationsVerbose(model, k.ops, time.Minute)
	if result == porcupine.Ok {
		return true
	}
	slices.SortFunc(k.ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range k.ops {
		end := "never"
		if op.Return != math.MaxInt64 {
			end = fmt.Sprint((op.Return - k.ops[0].Call) / 1000)
		}
		fmt.Fprintf(&text, "%9d–%9s µs  client %d  %s\n", (op.Call-k.ops[0].Call)/1000, end, op.ClientId,
			model.DescribeOperation(op.Input, op.Output))
	}
	page, err := os.CreateTemp("", "lubdub-history-*.html")
	if err == nil {
		err = porcupine.Visualize(model, info, page)
		_ = page.Close()
		h.Logf("a picture is in %s (%v)", page.Name(), err)
	}
	h.Errorf("the history of %s (queue %v) is %s:\n%s", k.id, k.queue, result, &text)
	return false
}

func (h *histories) report(ops, wrong int) {
	h.Logf("%d tasks, %d operations, %d histories wrong", len(h.tasks), ops, wrong)
	h.Logf("operations by answer: %s", inOrder(h.answers))
	h.Logf("replies lost after their script ran: %s; requests lost or cut short: %s", inOrder(h.lost), inOrder(h.requests))
}

// inOrder returns counts as text, sorted by name.
func inOrder(of map[string]int) string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text = append(text, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(text, ", ")
}
