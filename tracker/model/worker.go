package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Defaults and bounds of a worker.
const (
	DefaultWorkerInterval   = 10 * time.Second
	DefaultWorkerMultiplier = 3 // a worker's timeout in intervals
	FlappingThreshold       = 3 // timeouts within a day from which a worker or machine is flapping
	DefaultMaxConcurrent    = 100
	MaxMaxConcurrent        = 1_000_000
	WorkerTokenTTL          = time.Hour // of the token in the response to a registration or a beat
	MaxTypes                = 1000      // types of tasks that a worker runs
	MaxRuntimes             = 100
	MaxWorkerNameBytes      = 128
	MaxVersionBytes         = 128
	MaxHostnameBytes        = 255
	MaxProbeURLBytes        = 512
	MaxWorkerBytes          = 8 << 10 // of a whole registration, so that reading many workers delays no other call
)

// NewWorker describes a worker to register. Call Validate before Register.
type NewWorker struct {
	Scope         Scope
	Queue         string
	Types         []string
	Runtimes      []string
	Name          string
	MachineID     string // empty: named after Hostname, else the worker is its own machine
	Hostname      string
	PID           int // 0: not reported
	Version       string
	MaxConcurrent int // 0: 1; use DefaultMaxConcurrent when it is not specified
	Labels        map[string]string
	ProbeURL      string

	IdempotencyKey  string // empty: none
	IdempotencyHash string // of the canonical request body; set with the key
}

// Validate checks everything about a new worker that needs no store, and sets what follows from other fields. Its errors are those of
// NewTask.Validate.
func (n *NewWorker) Validate() error {
	for _, id := range []struct {
		field, value string
		required     bool
	}{
		{"tenantId", n.Scope.Tenant, true},
		{"workspaceId", n.Scope.Workspace, true},
		{"queue", n.Queue, true},
		{"machineId", n.MachineID, false},
	} {
		switch {
		case id.value == "" && id.required:
			return Invalidf(id.field, "is required")
		case id.value == "":
			continue
		}
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if len(n.Types) == 0 {
		return Invalidf("types", "is empty; name at least one type of task that this worker runs")
	}
	var err error
	if n.Types, err = checkNames("types", n.Types, MaxTypes); err != nil {
		return err
	}
	if n.Runtimes, err = checkNames("runtimes", n.Runtimes, MaxRuntimes); err != nil {
		return err
	}
	for _, text := range []struct {
		field, value string
		limit        int
	}{
		{"name", n.Name, MaxWorkerNameBytes}, {"hostname", n.Hostname, MaxHostnameBytes},
		{"version", n.Version, MaxVersionBytes}, {"probeUrl", n.ProbeURL, MaxProbeURLBytes},
	} {
		if err := CheckText(text.field, text.value, text.limit); err != nil {
			return err
		}
	}
	if n.PID < 0 || n.PID > 1<<31-1 {
		return Invalidf("pid", "is %d; use the process id, or omit it", n.PID)
	}
	if n.MaxConcurrent < 0 || n.MaxConcurrent > MaxMaxConcurrent {
		return Invalidf("maxConcurrent", "is %d; use 0 to %d", n.MaxConcurrent, MaxMaxConcurrent)
	}
	n.MaxConcurrent = max(n.MaxConcurrent, 1)
	if err := checkProbeURL(n.ProbeURL); err != nil {
		return err
	}
	if n.MachineID == "" {
		n.MachineID = machineOf(n.Hostname)
	}
	if err := CheckLabels("labels", n.Labels); err != nil {
		return err
	}
	return n.checkSize()
}

// checkSize returns an error with the largest field for a registration that is too large.
func (n *NewWorker) checkSize() error {
	total, largest := 0, struct {
		field string
		bytes int
	}{}
	for _, part := range []struct{ field, text string }{
		{"types", strings.Join(n.Types, ",")}, {"runtimes", strings.Join(n.Runtimes, ",")}, {"labels", PackLabels(n.Labels)},
		{"queue", n.Queue}, {"name", n.Name}, {"machineId", n.MachineID}, {"hostname", n.Hostname},
		{"version", n.Version}, {"probeUrl", n.ProbeURL},
	} {
		total += len(part.text)
		if len(part.text) > largest.bytes {
			largest.field, largest.bytes = part.field, len(part.text)
		}
	}
	if total > MaxWorkerBytes {
		return Invalidf(largest.field, "takes %d bytes, and the whole registration %d; a worker is kept in at most %d: "+
			"say less here, or share it out among several workers", largest.bytes, total, MaxWorkerBytes)
	}
	return nil
}

// machineOf returns the machine ID for a hostname. A hostname that is not a valid ID is converted to one that is still unique.
func machineOf(hostname string) string {
	if hostname == "" || ValidID(hostname) {
		return hostname
	}
	id := strings.Map(func(r rune) rune {
		if r < 0x80 && idByte[r] {
			return r
		}
		return '-'
	}, hostname)
	id = strings.Trim(id, "._-")
	return strings.TrimLeft(id[:min(len(id), MaxIDBytes-25)]+"-"+hashOf("host", hostname), "-")
}

// checkNames returns names without duplicates, or an error for invalid IDs or too many.
func checkNames(field string, names []string, limit int) ([]string, error) {
	if len(names) > limit {
		return nil, Invalidf(field, "has %d entries; use at most %d", len(names), limit)
	}
	seen := make(map[string]bool, len(names))
	var unique []string
	for i, name := range names {
		if err := CheckID(fmt.Sprintf("%s[%d]", field, i), name); err != nil {
			return nil, err
		}
		if !seen[name] {
			seen[name] = true
			unique = append(unique, name)
		}
	}
	return unique, nil
}

func checkProbeURL(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return Invalidf("probeUrl", "is not an absolute http or https URL without a user; for example http://10.0.0.7:8081/healthz")
	}
	return nil
}

// Identity is a hash that only one registration may have at a time, "" when the worker did not report enough.
func (n *NewWorker) Identity() string {
	if n.Hostname == "" || n.PID == 0 {
		return ""
	}
	return hashOf(n.Queue, n.MachineID, n.Name, n.Hostname, strconv.Itoa(n.PID))
}

// Lineage is a hash that a restarted worker shares with its predecessor: from its name, or else its process.
func (n *NewWorker) Lineage(id string) string {
	switch {
	case n.Name != "":
		return hashOf("name", n.Queue, n.MachineID, n.Name)
	case n.Identity() != "":
		return hashOf("process", n.Queue, n.MachineID, n.Hostname, strconv.Itoa(n.PID))
	}
	return id
}

func hashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Worker is the full view of one worker.
type Worker struct {
	Scope     Scope
	ID        string
	Name      string
	Queue     string
	MachineID string
	Hostname  string
	PID       int
	Version   string
	Types     []string
	Runtimes  []string
	Labels    map[string]string
	ProbeURL  string

	Status        WorkerStatus
	StatusReason  string       // the reason given for its drain or its end; without one for its end, EndReason
	EndReason     WorkerReason // why it is OFFLINE; empty: it is not
	Liveness      Liveness
	Unschedulable []Filter // why it would not be selected now; empty: it would be

	MaxConcurrent  int
	ActiveCount    int // as reported with its last beat
	Held           int // attempts that it holds
	Placed         int // queued tasks that are placed on it
	TotalCompleted int64
	TotalFailed    int64

	RegisteredAt    time.Time
	LastHeartbeatAt time.Time     // zero: none on record
	Silent          time.Duration // time since then, without outages
	DeregisteredAt  time.Time     // zero: it is not OFFLINE
	Recovery        Recovery      // of its attempts after its end
	DrainDeadline   time.Time     // zero: none
	Cordon          *Cordon       // nil: it is not cordoned
	Hold            *Hold         // nil: it is not held offline

	Uptime     float64 // percentage of the last 24 h before now or its end, or of its life, in which it was alive
	StaleCount int     // timeouts of it or its predecessors in the last 24 h
	Flapping   bool
	// MachineFlapping is set only when a worker is read with the timeouts of its machine.
	MachineFlapping bool
	Interval        time.Duration
	Timeout         time.Duration

	Lineage      string
	Identity     string
	LastSelected time.Time
	Elsewhere    int       // the part of ActiveCount that it did not claim
	ReadAt       time.Time // by Redis's clock
}

// Recovery counts what happened to the attempts that a worker held when it ended. The others were requeued.
type Recovery struct {
	Attempts  int // taken from it
	Failed    int // of these, tasks that failed for good
	Exhausted int // of these, tasks that had used up their retries
}

// Hold keeps an OFFLINE worker, or the workers of a machine, from registering again.
type Hold struct {
	Since  time.Time
	Reason string // "": none
}

// Cordon prevents a worker from taking new tasks.
type Cordon struct {
	Since  time.Time
	Reason string // empty: none
}

// Slim removes fields that may be long, for reading very many workers.
func (w *Worker) Slim() *Worker {
	w.Types, w.Runtimes, w.Labels, w.ProbeURL = nil, nil, nil, ""
	return w
}

// Life is the time in which a registration was alive.
type Life struct {
	Began, Ended time.Time
	Lost         bool // it ended by a timeout: until its lineage returns it counts as down
}

// life returns the worker's own life, as far as it is known.
func (w *Worker) life() Life {
	l := Life{w.RegisteredAt, w.ReadAt, w.Liveness == Lost}
	if w.Status == Offline {
		l.Ended, l.Lost = w.DeregisteredAt, w.EndReason == WorkerStale
	}
	if l.Lost || w.LastHeartbeatAt.IsZero() {
		l.Ended, l.Lost = w.LastHeartbeatAt, true
		if l.Ended.IsZero() {
			l.Ended = l.Began
		}
	}
	return l
}

// UptimePercent returns the share of the last day in which the worker, or an earlier registration of its lineage, was alive. The time
// between a planned end and the next registration is not counted. For a worker that has ended, the day ends there.
func (w *Worker) UptimePercent(lineage []Life) float64 {
	end := w.ReadAt
	if w.Status == Offline {
		end = w.DeregisteredAt
	}
	from := end.Add(-24 * time.Hour)
	between := func(a, b time.Time) time.Duration { // the part within the day
		if a.Before(from) {
			a = from
		}
		if b.After(end) {
			b = end
		}
		return max(0, b.Sub(a))
	}
	lives := append(slices.Clone(lineage), w.life())
	slices.SortStableFunc(lives, func(a, b Life) int { return a.Began.Compare(b.Began) })
	var up, down time.Duration
	reached, lost := lives[0].Began, false
	for _, l := range lives {
		if l.Began.After(reached) {
			if lost {
				down += between(reached, l.Began)
			}
			reached = l.Began
			lost = l.Lost
		}
		if !l.Ended.Before(reached) {
			up += between(reached, l.Ended)
			reached, lost = l.Ended, l.Lost
		}
	}
	if lost {
		down += between(reached, end)
	}
	return Percent(up, up+down)
}

// Percent returns a part's share of the whole in percent, to one decimal; 100 for an empty whole.
func Percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 100
	}
	p := 100 * float64(max(part, 0)) / float64(whole)
	return float64(int64(min(p, 100)*10+0.5)) / 10
}
