package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// queuesShown is how many queues get a separate finding.
const queuesShown = 10

// Workers evaluates the workers, machines, queues and webhooks of a deployment.
func Workers(k Known) []v1.Finding {
	all := verdict{about: v1.Them, reader: k.Reader}
	if k.Stats != nil {
		all.workers(&k.Stats.Workers)
		all.timeouts(k.Stats.BeatGapRatio)
	}
	if k.System != nil {
		all.webhooks(&k.System.Webhooks)
		all.poison(k.System.PoisonTasks)
		all.flapping(k.System.RecentlyLost)
		all.failures(&k.System.RecentFailures, k.System.Time.Time)
		all.lost(k.System)
	}
	all.queues(k.Queues)
	return all.found
}

func (v *verdict) workers(w *v1.WorkerLevels) {
	says := fmt.Sprintf("%s: %d fresh, %d late, %d silent past the timeout; %d draining.",
		count(w.Fresh+w.Late+w.Lost, "worker"), w.Fresh, w.Late, w.Lost, w.Draining)
	switch {
	case w.Lost > 0:
		v.fail("workers", says, "lubdub worker ls --silent")
	case w.Late > 0:
		v.warn("workers", says, "lubdub worker ls --liveness late --silent")
	default:
		v.ok("workers", says)
	}
}

// webhooks reports deliveries that were dropped because receivers did not accept them.
func (v *verdict) webhooks(w *v1.SystemWebhooks) {
	if w.DroppedLastHour > 0 {
		v.warn("webhooks", fmt.Sprintf("%d pending webhook deliveries were dropped in the last hour, the oldest first: those of "+
			"their tenant took more than a tenant may have.", w.DroppedLastHour),
			"find the webhooks by lubdub event ls --type webhook.dropped; repair their receivers, or disable or delete them")
	}
}

// timeouts reports how close live tasks and workers came to their timeouts.
func (v *verdict) timeouts(g *v1.BeatGapRatio) {
	if g == nil || g.Samples <= gapsAtLeast {
		return
	}
	percent, kind := int(math.Round(100*g.P99)), cmp.Or(g.Kind, "task")
	switch {
	case g.P99 > tightGap:
		v.warn("timeouts",
			fmt.Sprintf("At p99, healthy %ss use %d %% of their timeout between heartbeats; a busy spell would fail them.", kind, percent),
			"raise the timeout or send heartbeats more often: docs/timeouts.md")
	case g.P99 < amplePart:
		v.ok("timeouts", fmt.Sprintf("At p99, healthy %ss use %d %% of their timeout between heartbeats; you could shorten it to detect "+
			"failures sooner.", kind, percent))
	default:
		v.ok("timeouts", fmt.Sprintf("At p99, healthy %ss use %d %% of their timeout between heartbeats.", kind, percent))
	}
}

// queues evaluates queues: those without workers for some of their tasks, and paused ones.
func (v *verdict) queues(all []v1.Queue) {
	var stuck, paused []v1.Queue
	for _, q := range all {
		if unrunnable(&q) > 0 {
			stuck = append(stuck, q)
		}
		if q.Paused && q.Depth > 0 {
			paused = append(paused, q)
		}
	}
	for _, q := range stuck[:min(queuesShown, len(stuck))] {
		v.fail("queue", fmt.Sprintf("Queue %s: %s no online worker that can run %s.", q.Queue, have(unrunnable(&q), "task"),
			itOrThem(unrunnable(&q))),
			"start workers that can run them; their types, runtimes and labels: lubdub queue get "+q.Queue+" -o wide")
	}
	if more := len(stuck) - queuesShown; more > 0 {
		v.fail("queue", fmt.Sprintf("%s more with tasks that no online worker can run.", count(more, "queue")), "lubdub queue ls")
	}
	v.paused(paused)
}

// pausedNamed is how many paused queues the finding names.
const pausedNamed = 5

// paused warns about all paused queues in which tasks wait, in one finding.
func (v *verdict) paused(all []v1.Queue) {
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b v1.Queue) int { return cmp.Compare(b.Depth, a.Depth) })
	var named []string
	resume := "lubdub queue resume"
	for _, q := range all[:min(pausedNamed, len(all))] {
		named = append(named, fmt.Sprintf("%s (%s waiting)", q.Queue, count(q.Depth, "task")))
		resume += " " + q.Queue
	}
	if more := len(all) - pausedNamed; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
		resume += fmt.Sprintf(" (%d more: lubdub queue ls)", more)
	}
	v.warn("queue", are(len(all), "queue")+" paused: "+strings.Join(named, ", ")+".",
		either(v.reader.Operates, resume, "ask an operator to run "+resume))
}

func unrunnable(q *v1.Queue) (n int) {
	for _, t := range q.Types {
		n += t.Unrunnable
	}
	return n
}

// have returns "1 task has" or "2 tasks have".
func have(n int, noun string) string {
	if n == 1 {
		return count(n, noun) + " has"
	}
	return count(n, noun) + " have"
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
