package judge

import (
	"cmp"
	"fmt"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// lostNamed is how many lost workers a message names.
const lostNamed = 3

// losses sums up lost workers and the results of the attempts that they held.
type losses struct {
	workers int
	newest  string // its id
	named   []string
	known   map[string]bool
	sum     v1.LostWorker
}

// add counts a worker, and adds its name unless it is already there.
func (l *losses) add(w *v1.LostWorker, name string) {
	l.workers++
	l.newest = cmp.Or(l.newest, w.WorkerID)
	if !l.known[name] {
		if l.known == nil {
			l.known = map[string]bool{}
		}
		l.known[name] = true
		l.named = append(l.named, name)
	}
	l.sum.Attempts += w.Attempts
	l.sum.Requeued += w.Requeued
	l.sum.Failed += w.Failed
	l.sum.Exhausted += w.Exhausted
}

// outcomes describes how many attempts a worker lost and what became of their tasks; it leaves out what happened to none.
func outcomes(w *v1.LostWorker) string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{w.Requeued, "requeued"}, {w.Failed, "failed"}, {w.Exhausted, "failed with no retries left"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) == 0 {
		return count(w.Attempts, "attempt")
	}
	return count(w.Attempts, "attempt") + " (" + strings.Join(parts, ", ") + ")"
}

// names lists the newest.
func (l *losses) names() string {
	if more := len(l.named) - lostNamed; more > 0 {
		return strings.Join(l.named[:lostNamed], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(l.named, "; ")
}

func nameOf(w *v1.LostWorker) string {
	if w.Name != nil {
		return *w.Name
	}
	return w.WorkerID
}

// lost reports workers that were lost in the last hour, except those that were replaced or forced offline without holding anything: a
// warning while the newest loss is recent, history after that.
func (v *verdict) lost(s *v1.System) {
	var lost losses
	var newest v1.Time
	for i := range s.RecentlyLost {
		if w := &s.RecentlyLost[i]; w.Attempts > 0 || w.Reason == "HEARTBEAT_TIMEOUT" {
			if lost.workers == 0 {
				newest = w.LostAt
			}
			lost.add(w, fmt.Sprintf("%s on %s, queue %s", nameOf(w), w.MachineID, w.Queue))
		}
	}
	if lost.workers == 0 {
		return
	}
	says := fmt.Sprintf("%s lost in the last hour while holding %s", count(lost.workers, "worker"), outcomes(&lost.sum))
	if s.RecentlyLostTotal > len(s.RecentlyLost) {
		says = fmt.Sprintf("%s lost in the last hour; the newest %d held %s", count(s.RecentlyLostTotal, "worker"), lost.workers,
			outcomes(&lost.sum))
	}
	says += ": " + lost.names() + "."
	if ago := s.Time.Sub(newest.Time); ago >= resolvedAfter {
		v.ok("recently-lost", says+" The last was lost "+age(ago)+" ago.")
		return
	}
	v.warn("recently-lost", says, "lubdub why "+lost.newest)
}

// flapping warns about workers and machines that are lost and come back repeatedly.
func (v *verdict) flapping(all []v1.LostWorker) {
	var workers, machines losses
	for i := range all {
		w := &all[i]
		if w.Flapping {
			workers.add(w, fmt.Sprintf("%s on %s, queue %s (%s in 24 h)", nameOf(w), w.MachineID, w.Queue, count(w.StaleCount24h, "time")))
		}
		if w.MachineFlapping {
			machines.add(w, w.MachineID)
		}
	}
	const remedy = "look there for restarts, OOM kills and network trouble: lubdub why "
	if n := len(workers.named); n > 0 {
		v.warn("flapping", fmt.Sprintf("%s flapping (repeatedly lost and back): %s. Lost in the last hour: %s.", are(n, "worker"),
			workers.names(), outcomes(&workers.sum)), remedy+workers.newest)
	}
	if n := len(machines.named); n > 0 {
		v.warn("flapping", fmt.Sprintf("%s flapping (all of its workers repeatedly lost and back): %s. Lost in the last hour: %s.",
			are(n, "machine"), machines.names(), outcomes(&machines.sum)), remedy+machines.newest)
	}
}

// poisonNamed is how many tasks whose workers were lost get a separate finding.
const poisonNamed = 3

// poison warns about tasks that several workers ran when they were lost, and names the command that stops them.
func (v *verdict) poison(all []v1.PoisonTask) {
	for _, t := range all[:min(poisonNamed, len(all))] {
		var lost losses
		for i := range t.Workers {
			w := &t.Workers[i]
			lost.add(w, fmt.Sprintf("%s (%s) on %s", w.WorkerID, nameOf(w), w.MachineID))
		}
		var errors []string
		for _, g := range t.Errors[:min(poisonNamed, len(t.Errors))] {
			errors = append(errors, fmt.Sprintf("%d x %s", g.Count, g.Error))
		}
		says := fmt.Sprintf("Task %s (queue %s, type %s, %s) was running on %s when they were lost in the last hour, so it may be killing "+
			"them: %s. How its attempts ended: %s.", t.TaskID, orNone(t.Queue), orNone(t.Type), t.State, count(lost.workers, "worker"),
			lost.names(), strings.Join(errors, ", "))
		remedy := "lubdub why " + t.TaskID + "; if the task is the cause: " +
			either(v.reader.Cancels, "lubdub task cancel ", "ask an operator to run lubdub task cancel ") + t.TaskID
		if t.State == v1.Failed {
			remedy = "find the cause before it is retried: lubdub why " + t.TaskID
		}
		v.warn("poison-task", says, remedy)
	}
	if more := len(all) - poisonNamed; more > 0 {
		v.warn("poison-task", fmt.Sprintf("%s more lost several workers in the last hour.", count(more, "task")), "lubdub status -o json")
	}
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// are returns a count of a noun with its verb.
func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return count(n, noun) + " are"
}
