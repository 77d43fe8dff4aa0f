package capacity

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the plan for people: each number with the formula that it comes from.
func (p *Plan) WriteText(w io.Writer, f *Fleet, c *Costs) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value, formula string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", name, value, fmt.Sprintf(formula, args...))
	}
	fmt.Fprintf(&b, "%s\n", p.headline(f))
	if c.Provisional {
		fmt.Fprintf(&b, "Costs: %s. %s\n", c.Source, c.Note)
	} else {
		fmt.Fprintf(&b, "Costs: %s, on %s.\n", c.Source, c.Machine)
	}
	b.WriteString("\n")

	requests := p.RequestsPerSecond
	switch f.Way {
	case Worker:
		row("beats", comma(p.BeatsPerSecond)+" /s", "= tasks / tasks a worker / interval = %s / %s / %s", comma(p.Tasks), comma(f.Together),
			span(f.Interval))
	default:
		row("beats", comma(p.BeatsPerSecond)+" /s", "= tasks / interval = %s / %s", comma(p.Tasks), span(f.Interval))
	}
	if f.Way == Batch {
		row("requests", comma(requests)+" /s", "= beats / %d a request", f.Together)
	}
	if f.Life > 0 {
		row("new tasks", comma(p.LivesPerSecond)+" /s", "= tasks / life of %s", span(f.Life))
	}
	lives := ""
	if f.Life > 0 {
		lives = fmt.Sprintf(" + new tasks × %s µs", amount(c.LifeServerMicros))
	}
	row("API, busy", amount(p.APIBusyCores)+" cores", "= beats × %s µs × growth %s%s", amount(p.ServerMicros), amount(p.ServerGrowth), lives)
	why := map[string]string{"cpu": fmt.Sprintf("of %d cores", f.Cores), "failover": "in case one dies",
		"connections": "for their connections"}[p.APIBoundBy]
	row("API", amount(p.APICores)+" cores", "= busy / (1 − headroom %s): %s replicas %s, %s each", amount(f.Headroom), comma(p.APIReplicas),
		why, size(p.APIReplicaMemory))
	row("sweepers", strconv.Itoa(p.Sweepers), "one works, one is there when it dies; any replica may be both")
	if f.Life > 0 {
		lives = fmt.Sprintf(" + new tasks × %s µs", amount(c.LifeRedisMicros))
	}
	row("Redis, busy", amount(p.RedisBusyCores)+" cores", "= beats × %s µs × growth %s%s", amount(p.RedisMicros), amount(p.RedisGrowth), lives)
	row("Redis", comma(p.RedisPrimaries)+" "+plural(p.RedisPrimaries, "primary", "primaries"),
		"%s; each runs commands on one core, the busiest %s; with one replica each %s servers", p.bound(), percent(p.RedisBusiestShare),
		comma(p.RedisServers))
	row("Redis data", size(p.RedisDataBytes), "= %s", p.storageFormula(f, c))
	row("Redis memory", size(p.RedisMemoryBytes), "a server, = its share of the data × %d: a fork for snapshots and append-only files, "+
		"buffers of replicas", memoryReserve)
	row("shards", comma(p.Shards), "%s", shardsWhy(p.RedisPrimaries))
	if f.Life > 0 {
		row("events", "kept for "+span(time.Duration(p.EventsRetentionSeconds)*time.Second),
			"= shards × %s a shard / (new tasks × %d), or less by finished-retention; a later reader gets a gap",
			comma(p.eventsPerShard(f)), eventsOfALife)
	}
	if f.Webhooks > 0 {
		row("webhooks", size(p.WebhookBytes), "more of Redis at most, while none of their receivers answers, "+
			"= webhooks × %s, if each is another tenant's; those of one tenant share it", size(webhookBytes))
	}
	row("connections", comma(p.Connections), "at most, one for each task, batch or worker; %s an API replica; %s to each Redis server",
		comma(p.ConnectionsPerAPI), comma(p.RedisConnections))
	row("flush", amount(p.BeatsPerFlush)+" "+plural(int(math.Ceil(p.BeatsPerFlush)), "beat", "beats"),
		"within %s ms, = (replicas × %s × %s µs + round trip %s) / (1 − busiest): what a beat waits for Redis at most",
		amount(p.FlushWaitMs), amount(p.CallsPerFlush)+" "+plural(int(math.Ceil(p.CallsPerFlush)), "call", "calls"), amount(c.FlushMicros),
		span(f.RoundTrip))
	row("a silent task", "is declared dead", "within timeout + 250 ms = %s", span(time.Duration(p.DeclaredWithinMs)*time.Millisecond))
	row("a tenth dead", amount(p.MassDeathSeconds)+" s", "until the last verdict, = tasks / 10 / (%s a second × primaries)",
		comma(c.DeathsPerSecond))
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	for _, a := range p.Advice {
		fmt.Fprintf(&b, "- %s\n", a)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// storageFormula describes what Redis stores, and how much of each.
func (p *Plan) storageFormula(f *Fleet, c *Costs) string {
	running, finished := c.ofTask(f)
	all, schedules := "tasks × "+amount(running)+" bytes", ""
	if f.Way == Worker {
		all += fmt.Sprintf(" + workers × %s bytes", comma(workerBytes))
	}
	if f.Schedules > 0 {
		schedules = fmt.Sprintf(" + schedules × %s bytes", comma(scheduleBytes))
	}
	if f.Life == 0 {
		return all + schedules
	}
	all += fmt.Sprintf(" + new tasks × retention of %s × %s bytes", span(f.Retention), amount(finished))
	if f.Keys > 0 {
		all += fmt.Sprintf(" + new tasks × %s × %s × %d bytes for idempotency keys", percent(f.Keys), span(keyLife), keyBytes)
	}
	if f.ClaimIDs > 0 && f.Way == Worker {
		all += fmt.Sprintf(" + new tasks × %s × %s × %d bytes for claim ids", percent(f.ClaimIDs), span(claimIDLife), claimIDBytes)
	}
	return all + fmt.Sprintf(" + %s of events of %d bytes", size(p.EventsBytes), eventBytes) + schedules
}

func (p *Plan) headline(f *Fleet) string {
	how := "one task a request"
	switch f.Way {
	case Batch:
		how = fmt.Sprintf("%s tasks a request", comma(f.Together))
	case Worker:
		return p.dealt(fmt.Sprintf("%s tasks, workers of %s beat for all they hold every %s; timeout %s.", comma(p.Tasks), comma(f.Together),
			span(f.Interval), span(time.Duration(p.TimeoutSeconds*float64(time.Second)))))
	}
	return p.dealt(fmt.Sprintf("%s tasks, a beat every %s, %s with progress, %s; timeout %s.", comma(p.Tasks), span(f.Interval),
		percent(f.Progress), how, span(time.Duration(p.TimeoutSeconds*float64(time.Second)))))
}

// dealt states how many deployments a line is about.
func (p *Plan) dealt(line string) string {
	if p.Deployments > 1 {
		return fmt.Sprintf("%d deployments, each of %s", p.Deployments, line)
	}
	return line
}

func (p *Plan) bound() string {
	switch p.RedisBoundBy {
	case "cpu":
		return "so many for their CPU"
	case "memory":
		return "so many for their memory"
	}
	return "one is enough"
}

func shardsWhy(primaries int) string {
	if primaries == 1 {
		return "the default; if you may need a Cluster one day, begin with 64: the number is fixed"
	}
	return "at least 4 a primary, so that they can be dealt out evenly; fixed at the first start"
}

// WriteTable writes the costs as a table in Markdown.
func (c *Costs) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Source: %s (%s).", c.Source, c.Machine)
	if c.Note != "" {
		fmt.Fprintf(&b, " %s", c.Note)
	}
	b.WriteString("\n\n| cost | server | Redis |\n| --- | --- | --- |\n")
	row := func(what, server, redis string) { fmt.Fprintf(&b, "| %s | %s | %s |\n", what, server, redis) }
	cpu := func(what string, s Share) { row(what, amount(s.ServerMicros)+" µs", amount(s.RedisMicros)+" µs") }
	cpu("a beat with progress, one a request", c.Single.Share)
	cpu(fmt.Sprintf("a beat with progress, %d a request", c.Batch.Beats), c.Batch.Share)
	if c.Worker != nil {
		cpu("a worker's beat", c.Worker.Share)
	}
	cpu("the part of its progress", c.Progress)
	row(fmt.Sprintf("growth from %s to %s tasks", comma(c.Growth.FromTasks), comma(c.Growth.ToTasks)), "× "+amount(c.Growth.Server),
		"× "+amount(c.Growth.Redis))
	cpu("creation, start and completion of a task", Share{c.LifeServerMicros, c.LifeRedisMicros})
	row("a flush, even with few beats", "", amount(c.FlushMicros)+" µs")
	row("a running task", "", amount(c.TaskBytes)+" bytes")
	row("verdicts on simultaneous deaths", "", comma(c.DeathsPerSecond)+" /s")
	row("an API replica at rest", size(c.ReplicaBytes), "")
	row("a token that it remembers", comma(c.TokenBytes)+" bytes", "")
	row("a connection to it", comma(c.ConnectionBytes)+" bytes", "")
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// comma writes a whole number: 1,234,567.
func comma[T int | int64 | float64](v T) string {
	s := strconv.FormatInt(int64(math.Round(float64(v))), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// amount writes three digits: 0.0123, 3.67, 36.7, 367, 3,670.
func amount(v float64) string {
	if v >= 100 {
		return comma(v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 3, 64) + " %"
}

func size(bytes float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	u := 0
	for ; bytes >= 1024 && u < len(units)-1; u++ {
		bytes /= 1024
	}
	return amount(bytes) + " " + units[u]
}

// span writes a duration without its zeros: 30s, 1m30.25s, 24h.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
