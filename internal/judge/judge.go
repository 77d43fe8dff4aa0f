// Package judge evaluates a deployment: whether Lubdub itself is at fault (Redis, replicas, shards) or the workers (workers, machines,
// queues), and what to do. The server evaluates only what its API returns, and includes the findings in its answers; programs that show
// them use these words and define no limits. `lubdub doctor --redis` uses it to check a Redis where no server runs.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Known is the input. A nil field is unknown and not evaluated.
type Known struct {
	Health *v1.Health
	System *v1.System
	Stats  *v1.Stats
	Queues []v1.Queue
	// OutageEnded is how long ago the newest outage of the last hour ended; its length is in System.
	OutageEnded time.Duration
	// Braked are the scopes (tenant/workspace) in which the mass-expiry brake holds something and that the reader may see.
	Braked []Scope
	// Unread is why some of it is unknown although it was requested; empty: all is known.
	Unread string
	// Reader describes the token of the reader of the findings.
	Reader Reader
}

// Scope is a tenant's workspace.
type Scope struct{ Tenant, Workspace string }

// Reader is what the reader's token allows. Remedies that need more are not named.
type Reader struct {
	AllScopes bool // it may read what belongs to no workspace
	Operates  bool // it may resume queues and release what the brake holds
	Cancels   bool // it may cancel tasks
}

// either returns a remedy if the token allows it, else the alternative.
func either(allowed bool, remedy, otherwise string) string {
	if allowed {
		return remedy
	}
	return otherwise
}

// Limits of a healthy deployment. A test checks that an alert of deploy/observability on the same value has the same limit.
const (
	lagAllowed  = time.Second            // for which an overdue deadline may wait
	lagForLong  = 250 * time.Millisecond // the same, throughout the last minute
	longLag     = time.Minute
	stopAllowed = time.Second // for which a shard's time may be paused: a moment is normal

	refusedShare     = 0.01 // of the beats that are accepted
	refusedPerSecond = 0.1  // in addition to that share

	// What is over (an outage, the loss of workers) is a warning for so long, and history after that.
	resolvedAfter = 5 * time.Minute

	gapsAtLeast = 100 // samples, below which they are not evaluated
	tightGap    = 0.8 // of the timeout: p99 of live tasks and workers is above it
	amplePart   = 0.1 // p99 below it: the timeout could be shorter
)

// StepsLookedAt is how many of the newest steps of the series are evaluated.
const StepsLookedAt = 6

// All returns all findings: failures first, then warnings, then healthy findings. In each severity a cause comes before what it causes,
// and otherwise a finding about Lubdub before those about workers.
func All(k Known) []v1.Finding {
	all := append(Lubdub(k), Workers(k)...)
	slices.SortStableFunc(all, func(a, b v1.Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(afterCauses(a), afterCauses(b)))
	})
	return all
}

// lastWarnings are the codes of warnings that come after all others, in this order: first what is over or a symptom, then what can be
// improved at any time.
var lastWarnings = []string{"recently-lost", "shard-time", "workers", "webhooks", "timeouts", "redis-persistence", "redis-version", "redis"}

// afterCauses returns the position of a warning among lastWarnings; 0: before them.
func afterCauses(f v1.Finding) int {
	if f.Severity != v1.SeverityWarn {
		return 0
	}
	return slices.Index(lastWarnings, f.Code) + 1
}

// NoRedis evaluates a deployment whose Redis servers do not respond, from what a server knows without them.
func NoRedis(nodes []v1.SystemRedis) ([]v1.Finding, v1.Summary) {
	v := verdict{about: v1.Us}
	name, check := "Redis", `lubdub doctor --redis "$LUBDUB_REDIS"`
	var addresses []string
	for _, n := range nodes {
		if n.Address != nil {
			addresses = append(addresses, *n.Address)
		}
	}
	if len(addresses) > 0 {
		name, check = "Redis "+strings.Join(addresses, ", "), "lubdub doctor --redis redis://"+addresses[0]
	}
	v.fail("redis", name+" is not responding. Requests that need it get 503 until it recovers. Timeouts are paused meanwhile, so no "+
		"worker is declared dead and no task fails for missing heartbeats.",
		"restore Redis; to check the connection, run on the host of the Lubdub server: "+check+"; once Redis responds, Lubdub "+
			"continues without a restart")
	s := Summarise(v.found)
	s.Title = "Redis is not responding; timeouts are paused"
	return v.found, s
}

var rank = map[v1.Severity]int{v1.SeverityFail: 0, v1.SeverityWarn: 1, v1.SeverityOK: 2}

// Lubdub evaluates Lubdub itself and its infrastructure.
func Lubdub(k Known) []v1.Finding {
	all := verdict{about: v1.Us, where: "the replica that answers", reader: k.Reader}
	all.health(k.Health)
	if k.Unread != "" {
		all.fail("answers", "Some answers are missing: "+k.Unread, "retry; check the Redis findings and docs/runbooks.md")
	}
	if k.System != nil {
		all.replicas(k.System)
		all.brake(&k)
		for i := range k.System.Redis {
			all.redis(&k.System.Redis[i])
		}
		all.shards(&k)
	}
	if k.Stats != nil {
		all.lag(k.Stats)
		all.refusals(k.Stats)
	}
	return all.found
}

// verdict collects the findings about one party.
type verdict struct {
	about  v1.Party
	where  string // from which host Redis was checked
	reader Reader
	found  []v1.Finding
}

func (v *verdict) add(code string, how v1.Severity, message, remedy string) {
	v.found = append(v.found, v1.Finding{Code: code, Severity: how, About: v.about, Message: message, Remedy: remedy})
}

func (v *verdict) ok(code, message string)           { v.add(code, v1.SeverityOK, message, "") }
func (v *verdict) warn(code, message, remedy string) { v.add(code, v1.SeverityWarn, message, remedy) }
func (v *verdict) fail(code, message, remedy string) { v.add(code, v1.SeverityFail, message, remedy) }

func (v *verdict) health(h *v1.Health) {
	switch {
	case h == nil:
	case h.Status != "ok":
		v.fail("ready", "This server is "+h.Status+": "+h.Message, cmp.Or(h.Next, "check its log and the Redis findings"))
	default:
		v.ok("ready", "This server is ready.")
	}
}

func (v *verdict) replicas(s *v1.System) {
	versions, sweepers := map[string]bool{}, 0
	for _, r := range s.Replicas {
		versions[r.Version] = true
		if slices.Contains(r.Roles, "sweeper") {
			sweepers++
		}
	}
	says := fmt.Sprintf("%s running, %d with the sweeper role.", count(len(s.Replicas), "replica"), sweepers)
	switch {
	case sweepers == 0:
		v.fail("replicas", says+" Without a sweeper no dead worker is detected.", "start a replica with --roles sweeper")
	case len(versions) > 1:
		v.warn("replicas", says+" They run "+count(len(versions), "version")+".", "finish the upgrade")
	default:
		v.ok("replicas", says)
	}
	if len(s.DifferingSettings) > 0 {
		v.warn("settings", "Replicas differ in "+strings.Join(s.DifferingSettings, ", ")+".",
			"give all replicas the same values; replicas with different signing keys reject each other's tokens")
	} else {
		v.ok("settings", "All replicas have the same signing keys and shared settings.")
	}
}

// brake warns about what the mass-expiry brake holds, and names the command that releases it in its scope.
func (v *verdict) brake(k *Known) {
	held := k.System.Brake.Held
	if held == 0 {
		return
	}
	where, remedy := "other tenants or workspaces", "ask an operator of that scope to check its workers"
	if len(k.Braked) > 0 {
		first := k.Braked[0]
		where = first.Tenant + "/" + first.Workspace
		command := "lubdub system release --tenant " + first.Tenant + " --workspace " + first.Workspace
		if more := len(k.Braked) - 1; more > 0 {
			where += " and " + count(more, "more scope")
			command += ", then in the other scopes"
		}
		remedy = "check the network between the workers and Lubdub, and the hosts listed by lubdub worker ls --silent; only if all of " +
			"them are dead, " + either(v.reader.Operates, "", "ask an operator to ") + "declare them dead immediately: " + command
	}
	v.warn("brake", fmt.Sprintf("The mass-expiry brake is delaying the expiry of %s in %s: so many fell silent at once that a fault of the "+
		"network or of Lubdub is more likely than that many deaths. Each gets a second timeout period, and is declared dead at its end "+
		"unless it sends a heartbeat.", count(held, "worker or task", "workers and tasks"), where), remedy)
}

func (v *verdict) shards(k *Known) {
	s := k.System
	var orphans, stopped []string
	var lag, credit int64
	for _, h := range s.Shards {
		if h.Sweeper == nil {
			orphans = append(orphans, fmt.Sprint(h.Shard))
		}
		if milliseconds(h.StoppedMs) >= stopAllowed {
			stopped = append(stopped, fmt.Sprintf("%d (for %v)", h.Shard, milliseconds(h.StoppedMs)))
		}
		lag, credit = max(lag, h.LagMs), max(credit, h.OutageCreditMs)
	}
	switch {
	case len(orphans) > 0:
		v.fail("shards", "No sweeper covers "+some("shard", orphans)+": dead workers and tasks there are not detected.",
			"start a replica with --roles sweeper, and check the logs of those that run")
	case milliseconds(lag) > lagAllowed:
		v.warn("shards", fmt.Sprintf("Verdicts are running up to %v late.", milliseconds(lag)),
			"check the Redis findings; a mass failure takes a few seconds to work through; otherwise add a sweeper")
	default:
		late := "without delay"
		if lag > 0 {
			late = fmt.Sprintf("at most %v late", milliseconds(lag))
		}
		v.ok("shards", fmt.Sprintf("%s being swept, %s.", are(len(s.Shards), "shard"), late))
	}
	switch {
	case len(stopped) > 0:
		v.fail("shard-time", "Heartbeats cannot be written in "+some("shard",
			stopped)+". Timeouts are paused there, so no worker will be failed.",
			"check the Redis findings and the rejected heartbeats; it recovers on its own")
	case milliseconds(credit) >= stopAllowed && k.OutageEnded < resolvedAfter:
		v.warn("shard-time", fmt.Sprintf("Heartbeats could not be stored for up to %v in the last hour; the outage ended %s ago. That time "+
			"was not counted as silence, so no worker was failed for it.", milliseconds(credit), age(k.OutageEnded)), "find the cause: "+
			either(v.reader.AllScopes, "lubdub event ls --type 'system.*'", "check the logs of Lubdub and Redis"))
	case milliseconds(credit) >= stopAllowed:
		v.ok("shard-time", fmt.Sprintf("Timeouts are being enforced normally; the last outage was resolved %s ago (up to %v of the last "+
			"hour were not counted as silence).", age(k.OutageEnded), milliseconds(credit)))
	default:
		v.ok("shard-time", "Timeouts are being enforced normally.")
	}
}

// lag evaluates how late sweepers were in every step of the last minute; the shards report the current lag.
func (v *verdict) lag(s *v1.Stats) {
	steps := s.Series.Steps
	n := int(longLag.Milliseconds() / max(1, s.Series.StepMs))
	if len(steps) < n || n == 0 {
		return
	}
	least := time.Duration(steps[len(steps)-1].SweepLagMs) * time.Millisecond
	for _, step := range steps[len(steps)-n:] {
		least = min(least, milliseconds(step.SweepLagMs))
	}
	if least > lagForLong {
		v.warn("sweep-lag", fmt.Sprintf("Sweepers have been at least %v late throughout the last minute.", least),
			"add a sweeper, or find what slows Redis down: docs/runbooks.md#lubdubsweeplag")
	}
}

// ours are the refusals that indicate a problem of the server; the others inform a worker that its attempt is over.
var ours = []string{v1.CodeOverloaded, v1.CodeStoreUnavailable}

// refusals evaluates the refusals of the newest step.
func (v *verdict) refusals(s *v1.Stats) {
	steps := s.Series.Steps
	if len(steps) == 0 || s.Series.StepMs <= 0 {
		return
	}
	var refused int64
	last := steps[len(steps)-1]
	for _, code := range ours {
		refused += last.Refused[code]
	}
	seconds := milliseconds(s.Series.StepMs).Seconds()
	rate, accepted := float64(refused)/seconds, float64(last.Beats)/seconds
	if rate > refusedShare*accepted+refusedPerSecond {
		v.fail("refusals", fmt.Sprintf("Rejecting %.1f heartbeats/s; accepting %.1f/s.", rate, accepted),
			"check the findings about Redis and replicas; no worker is failed for it: docs/runbooks.md#lubdubheartbeatsrefused")
	}
}

func some(noun string, all []string) string {
	if len(all) > 1 {
		noun += "s"
	}
	if len(all) > 5 {
		return fmt.Sprintf("%d %s, including %s", len(all), noun, strings.Join(all[:5], ", "))
	}
	return noun + " " + strings.Join(all, ", ")
}

// count returns a count with its noun; the plural is the noun with an s, unless another is given.
func count(n int, noun string, plural ...string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case len(plural) > 0:
		return fmt.Sprintf("%d %s", n, plural[0])
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// age returns how long ago something was, in minutes after the first.
func age(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
