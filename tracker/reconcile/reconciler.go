package reconcile

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// The reconciler slowly scans everything that names a task or a worker and compares it with the records: it removes entries
// without a record and restores what a record needs to end. In a healthy store it finds nothing, since every transition writes
// everything in one step. After lost writes or a deleted key, it finds what no sweeper would ever see.
const (
	reconcilePage = 50 // entries of one step, approximately
	reconcileIdle = 25 // the minimum that a step counts, since reading an empty set costs too
	repairLimit   = 25 // tasks or workers of one script call

	// Rate is how many entries all sweepers together examine per second. Each costs Redis about 25 µs, so all take less than one
	// percent of a core.
	Rate = 250
)

// walk is one set of a shard to walk over. One of the three functions reads its entries; without one they are the timeouts in use.
type walk struct {
	set     string // its name in docs/redis-keys.md
	scan    string
	timeout string // of a beats set, ms
	key     func(*schema.ShardKeys) string
	task    func(entry string, shard int) (taskEntry, bool)
	worker  func(entry string, shard int) (workerEntry, bool)
	// repair is for sets of other packages, which repair them themselves.
	repair func(ctx context.Context, s *Service, shard int, entries []string) (map[string]int, error)
}

// walks are the sets of a shard in the order of the walk; the beats sets follow, as timeouts lists them.
var walks = []walk{
	{set: "timeouts", scan: "SSCAN", key: func(k *schema.ShardKeys) string { return k.Timeouts }},
	{set: "ix", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Index }, task: ofIndex},
	{set: "held", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Held }, task: ofHeld},
	{set: "ready", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Ready }, task: ofReady},
	{set: "timers", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Timers }, task: ofTimer},
	{set: "due", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Due }, task: ofTimer},
	{set: "progress", scan: "HSCAN", key: func(k *schema.ShardKeys) string { return k.Progress }, task: ofMember},
	{set: "cancels", scan: "HSCAN", key: func(k *schema.ShardKeys) string { return k.Cancels }, task: ofMember},
	{set: "workerbeats", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.WorkerBeats }, worker: ofWorkerCheck},
	{set: "workerdue", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.WorkerDue }, worker: ofWorkerDue},
	{set: "recoveries", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Recoveries }, worker: ofRecovery},
	{set: "schedules", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Schedules }, repair: repairSchedules},
	{set: "scheduledue", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.ScheduleDue }, repair: repairSchedules},
	{set: "webhooks", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Webhooks }, repair: repairWebhooks},
	{set: "hookdue", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.HookDue }, repair: repairWebhooks},
	// Last: by now no machine is without workers only because its lists lost them.
	{set: "workers", scan: "ZSCAN", key: func(k *schema.ShardKeys) string { return k.Workers }, worker: ofWorkerIndex},
}

// walkOfBeats returns the walk over the beats set of one timeout.
func walkOfBeats(timeout string) walk {
	return walk{
		set: "beats", scan: "ZSCAN", timeout: timeout, task: ofMember,
		key: func(k *schema.ShardKeys) string { return k.Beats(timeout) },
	}
}

// position is the position of the walk in one shard.
type position struct {
	at       int
	cursor   string // "": at the start of a set
	timeouts []string
}

func (p *position) walk() walk {
	if p.at < len(walks) {
		return walks[p.at]
	}
	return walkOfBeats(p.timeouts[p.at-len(walks)])
}

// moveOn moves to the page that begins at the cursor.
func (p *position) moveOn(cursor string) {
	if p.cursor = cursor; cursor != "0" {
		return
	}
	p.cursor = ""
	if p.at++; p.at == len(walks)+len(p.timeouts) {
		*p = position{}
	}
}

// Reconciler is the walk of one sweeper over all shards. Only one goroutine takes its steps.
type Reconciler struct {
	service    *Service
	sweeper    string                             // its ID, for evidence
	rank       func(shard int, live []string) int // of the sweeper for a shard; rank 0 examines it
	shard      []position
	recordless *recordless
}

// NewReconciler returns the reconciler of a sweeper.
func NewReconciler(s *Service, sweeper string, rank func(shard int, live []string) int) *Reconciler {
	return &Reconciler{
		service: s, sweeper: sweeper, rank: rank, shard: make([]position, s.store.Shards()),
		recordless: &recordless{since: map[string]int64{}},
	}
}

// Run takes a step in a random shard whenever its pace allows one, until the context ends. It leaves a shard to the sweeper with
// rank 0 for it, so all sweepers together keep the pace.
func (r *Reconciler) Run(ctx context.Context) {
	wait := time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration((0.5 + rand.Float64()) * float64(wait))):
		}
		seen, _, err := r.step(ctx, rand.IntN(len(r.shard)), true)
		wait = time.Duration(max(seen, reconcileIdle)) * time.Second / Rate
		if err != nil {
			wait = max(wait, time.Second) // the store does not respond, which the sweeper logs
		}
	}
}

// WalkOnce walks over everything from the beginning, separately from the walk of Run, and counts what it repaired.
func (r *Reconciler) WalkOnce(ctx context.Context) (map[string]int, error) {
	once, repairs := NewReconciler(r.service, r.sweeper, r.rank), map[string]int{}
	once.recordless = r.recordless
	for shard := range once.shard {
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return repairs, err
			}
			_, found, err := once.step(ctx, shard, false)
			for what, n := range found {
				repairs[what] += n
			}
			if err != nil {
				return repairs, err
			}
			more = once.shard[shard].at > 0 || once.shard[shard].cursor != ""
		}
	}
	return repairs, nil
}

// step examines one page of one shard and moves on. It returns how many entries it examined.
func (r *Reconciler) step(ctx context.Context, shard int, ranked bool) (seen int, repairs map[string]int, err error) {
	s, p := r.service, &r.shard[shard]
	w := p.walk()
	cursor := p.cursor
	if cursor == "" {
		cursor = "0"
	}
	reply, err := s.store.Do(ctx, op, s.scripts.walkCall(shard, w.key(s.store.Keys[shard]), w.scan, cursor, reconcilePage))
	if err != nil {
		return 0, nil, err
	}
	page := readWalk(reply)
	if ranked && r.rank(shard, page.sweepers) > 0 {
		return 0, nil, nil
	}
	switch {
	case w.task != nil:
		repairs, err = r.repairTasks(ctx, shard, w, page.entries)
	case w.worker != nil:
		repairs, err = s.repairWorkers(ctx, shard, w, page.entries)
	case w.repair != nil:
		repairs, err = w.repair(ctx, s, shard, page.entries)
	default:
		p.timeouts = append(p.timeouts, page.entries...)
	}
	s.entries.Add(float64(len(page.entries)))
	if err == nil { // else the same page again
		p.moveOn(page.cursor)
	}
	return len(page.entries), repairs, err
}

// countRepairs counts what scripts reported as repaired.
func (s *Service) countRepairs(calls []*store.Call) (map[string]int, error) {
	repairs := map[string]int{}
	for _, c := range calls {
		if c.Err != nil {
			continue
		}
		for _, repaired := range readRepairs(c.Reply) {
			for _, what := range repaired {
				repairs[what]++
			}
		}
	}
	s.reportRepairs(repairs)
	return repairs, store.FirstError(calls)
}

// reportRepairs counts and logs the repairs.
func (s *Service) reportRepairs(repairs map[string]int) {
	for what, n := range repairs {
		s.repairs.WithLabelValues(what).Add(float64(n))
	}
	lists := repairs["missing_list"] + repairs["stray_list"] // which an older release leaves behind as well
	if len(repairs) > 0 && (len(repairs) > 2 || lists == 0) {
		s.log.Warn("the reconciler repaired the store; if it lost writes or something else wrote to it, "+
			"this was to be expected, else please report it", "repairs", repairs)
	}
}
