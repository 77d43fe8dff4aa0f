// Package judge says in words how a deployment is, from what its API tells and nothing else: whether it is us (Redis, replicas,
// shards) or them (workers, machines, queues), and what to do. Every surface that answers operators takes its words from here.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Level is how bad a finding is.
type Level string

const (
	OK   Level = "ok"
	Warn Level = "warn" // will do harm, or has done some
	Fail Level = "fail" // does harm now
)

// Finding is one thing that was looked at.
type Finding struct {
	// Check is what was looked at, such as redis-policy.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Says is what was found, in a sentence.
	Says string `json:"says"`
	// Do is what to do about it; empty when all is well.
	Do string `json:"do,omitempty"`
}

// Known is what the API tells. What is nil is not known and not judged.
type Known struct {
	Health *v1.Health
	System *v1.System
	Stats  *v1.Stats
	Queues []v1.Queue
}

// Worst is the worst level of findings.
func Worst(all []Finding) Level {
	worst := OK
	for _, f := range all {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// Us judges Lubdub itself and what it stands on.
func Us(k Known) (all []Finding) {
	all = append(all, health(k.Health)...)
	if k.System == nil {
		return all
	}
	all = append(all, replicas(k.System)...)
	for i := range k.System.Redis {
		all = append(all, redis(&k.System.Redis[i])...)
	}
	return append(all, shards(k.System)...)
}

func health(h *v1.Health) []Finding {
	switch {
	case h == nil:
		return nil
	case h.Status != "ok":
		return []Finding{{"ready", Fail, "The server that answers is " + h.Status + ": " + h.Message,
			cmp.Or(h.Next, "see its log, and the store below")}}
	}
	return []Finding{{"ready", OK, "The server that answers is ready.", ""}}
}

func replicas(s *v1.System) (all []Finding) {
	versions, sweepers := map[string]bool{}, 0
	for _, r := range s.Replicas {
		versions[r.Version] = true
		if slices.Contains(r.Roles, "sweeper") {
			sweepers++
		}
	}
	says := fmt.Sprintf("%s, %d of them with the role sweeper.", count(len(s.Replicas), "replica"), sweepers)
	switch {
	case sweepers == 0:
		all = append(all, Finding{"replicas", Fail, says + " Nobody looks for the dead.", "start one with --roles sweeper"})
	case len(versions) > 1:
		all = append(all, Finding{"replicas", Warn, says + " They run " + count(len(versions), "version") + ".", "finish the upgrade"})
	default:
		all = append(all, Finding{"replicas", OK, says, ""})
	}
	if len(s.DifferingSettings) > 0 {
		all = append(all, Finding{"settings", Warn, "Replicas differ in " + strings.Join(s.DifferingSettings, ", ") + ".",
			"give all replicas the same; signing keys that differ refuse each other's tokens"})
	} else {
		all = append(all, Finding{"settings", OK, "Replicas have the same keys and settings where they must.", ""})
	}
	if s.Brake.Held > 0 {
		all = append(all, Finding{"brake", Warn, fmt.Sprintf("The mass expiry brake remembers %d: so many went silent together that Lubdub "+
			"suspects itself or the network.", s.Brake.Held),
			"look at one of their machines; if they are dead, lubdub system release"})
	}
	return all
}

// What a shard may be behind, and still be well.
const lagAllowed = time.Second

func shards(s *v1.System) []Finding {
	var orphans, stopped []string
	var lag, credit int64
	for _, h := range s.Shards {
		if h.Sweeper == nil {
			orphans = append(orphans, fmt.Sprint(h.Shard))
		}
		if h.StoppedMs > 0 {
			stopped = append(stopped, fmt.Sprintf("%d (for %v)", h.Shard, milliseconds(h.StoppedMs)))
		}
		lag, credit = max(lag, h.LagMs), max(credit, h.OutageCreditMs)
	}
	swept := Finding{"shards", OK, fmt.Sprintf("All %d shards are swept, the last %v behind.", len(s.Shards), milliseconds(lag)), ""}
	switch {
	case len(orphans) > 0:
		swept = Finding{"shards", Fail, "Nobody sweeps " + some("shard", orphans) + ": who dies there is not found.",
			"start a replica with --roles sweeper, and see the log of those that run"}
	case milliseconds(lag) > lagAllowed:
		swept = Finding{"shards", Warn, fmt.Sprintf("What is overdue waits up to %v to be judged.", milliseconds(lag)),
			"see Redis below; very many deaths at once take seconds; else add a sweeper"}
	}
	clock := Finding{"shard-time", OK, "Shard time runs: the silent are judged.", ""}
	switch {
	case len(stopped) > 0:
		clock = Finding{"shard-time", Fail, "Time stands in " + some("shard",
			stopped) + ": beats cannot land there, and nobody is judged silent.",
			"see Redis and the refusals of beats; it runs again by itself"}
	case credit > 0:
		clock = Finding{"shard-time", Warn, fmt.Sprintf("Outages of the last hour took up to %v out of everyone's silence; nobody died of them.",
			milliseconds(credit)), "find what stopped: lubdub event ls --type system.*"}
	}
	return []Finding{swept, clock}
}

// Them judges what works for Lubdub.
func Them(k Known) (all []Finding) {
	if k.Stats != nil {
		w := k.Stats.Workers
		all = append(all, Finding{"workers", OK, fmt.Sprintf("%s fresh, %d late, %d lost; %d draining.", count(w.Fresh, "worker"), w.Late, w.Lost,
			w.Draining), ""})
		switch f := &all[len(all)-1]; {
		case w.Lost > 0:
			f.Level, f.Do = Fail, "lubdub worker ls --liveness lost --silent, then lubdub why of one of them"
		case w.Late > 0:
			f.Level, f.Do = Warn, "lubdub worker ls --liveness late --silent"
		}
	}
	for i := range k.Queues {
		all = append(all, queue(&k.Queues[i])...)
	}
	return all
}

func queue(q *v1.Queue) (all []Finding) {
	stuck := 0
	for _, t := range q.Types {
		stuck += t.Unrunnable
	}
	if stuck > 0 {
		all = append(all, Finding{"queue", Fail, fmt.Sprintf("%s in the queue %s that no ONLINE worker can run.", count(stuck, "task"), q.Queue),
			"start workers with those types, runtimes and labels: lubdub queue get " + q.Queue + " -o wide"})
	}
	if q.Paused && q.Depth > 0 {
		all = append(all, Finding{"queue", Warn, fmt.Sprintf("The queue %s is paused, and %s wait in it.", q.Queue, count(q.Depth, "task")),
			"lubdub queue resume " + q.Queue})
	}
	return all
}

func some(noun string, all []string) string {
	if len(all) > 1 {
		noun += "s"
	}
	if len(all) > 5 {
		return fmt.Sprintf("%d %s, among them %s", len(all), noun, strings.Join(all[:5], ", "))
	}
	return noun + " " + strings.Join(all, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
