package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Way is how tasks beat.
type Way string

const (
	Single Way = "single" // one task a request
	Batch  Way = "batch"  // many tasks a request
	Worker Way = "worker" // one beat of a worker for all its tasks
)

// Fleet describes the tasks and workers to be served.
type Fleet struct {
	Tasks    int64
	Interval time.Duration
	Timeout  time.Duration // 0: three intervals
	Way      Way
	// Together is how many tasks one request, or one worker's beat, covers; 1 for Single.
	Together int
	// Progress is the share of beats with a progress report.
	Progress float64
	// Life is how long a task runs; 0: so long that its creation and end do not matter.
	Life time.Duration
	// Retention is how long finished tasks and events are kept; 0: 24 h for events. Finished tasks count only with Life.
	Retention time.Duration
	// Keys is the share of creations with an idempotency key, ClaimIDs that of claims with a claim id, with one task each.
	// Only with Life; ClaimIDs only for Worker.
	Keys, ClaimIDs float64

	// EventsPerShard is how many events a shard keeps; 0: 10,000, or with fewer than 16 shards as many as 16 keep together.
	EventsPerShard int64
	// Schedules and Webhooks are their numbers. Tasks that schedules create are included in the tasks.
	Schedules, Webhooks int64

	// Headroom is the share of each core that stays free.
	Headroom float64
	// Cores of an API replica.
	Cores int
	// RedisMemory is the memory limit of one Redis server.
	RedisMemory float64
	// RoundTrip to Redis and back.
	RoundTrip time.Duration
}

// Plan is what a fleet needs. Cores are cores like those of the measurement. If several deployments are needed, each needs what the
// plan states.
type Plan struct {
	Deployments int   `json:"deployments"`
	Tasks       int64 `json:"tasks"` // of each deployment

	BeatsPerSecond         float64 `json:"beatsPerSecond"`
	RequestsPerSecond      float64 `json:"requestsPerSecond"`
	LivesPerSecond         float64 `json:"livesPerSecond,omitempty"`
	EventsPerSecond        float64 `json:"eventsPerSecond,omitempty"`   // about lives
	EventsRetentionSeconds float64 `json:"eventsKeptSeconds,omitempty"` // at that rate
	EventsBytes            float64 `json:"eventsBytes,omitempty"`       // of Redis's data, once the streams are full
	WebhookBytes           float64 `json:"webhookBytes,omitempty"`      // in addition to Redis's data, while no receiver answers
	TimeoutSeconds         float64 `json:"timeoutSeconds"`

	ServerMicros float64 `json:"serverMicrosPerBeat"`
	RedisMicros  float64 `json:"redisMicrosPerBeat"`
	ServerGrowth float64 `json:"serverGrowth"`
	RedisGrowth  float64 `json:"redisGrowth"`

	APIBusyCores      float64  `json:"apiBusyCores"`
	APICores          float64  `json:"apiCores"`
	APIReplicas       int      `json:"apiReplicas"`
	APIBoundBy        string   `json:"apiBoundBy"` // cpu, connections or failover
	APIReplicaMemory  float64  `json:"apiReplicaMemoryBytes"`
	TokensPerReplica  int64    `json:"tokensPerReplica"` // of what runs
	TokensRemembered  int64    `json:"tokensRememberedPerReplica"`
	Connections       int64    `json:"connections"`
	ConnectionsPerAPI int64    `json:"connectionsPerApiReplica"`
	Sweepers          int      `json:"sweepers"`
	RedisBusyCores    float64  `json:"redisBusyCores"`
	RedisPrimaries    int      `json:"redisPrimaries"`
	RedisServers      int      `json:"redisServers"`
	RedisBoundBy      string   `json:"redisBoundBy"` // cpu, memory, or empty: one is enough
	RedisBusiestShare float64  `json:"redisBusiestShare"`
	RedisDataBytes    float64  `json:"redisDataBytes"`
	RedisMemoryBytes  float64  `json:"redisMemoryBytesPerServer"`
	Shards            int      `json:"shards"`
	FlushWaitMs       float64  `json:"flushWaitMs"`
	CallsPerFlush     float64  `json:"callsPerFlush"`
	BeatsPerFlush     float64  `json:"beatsPerFlush"`
	RedisConnections  int      `json:"connectionsPerRedisServer"`
	MassDeathSeconds  float64  `json:"tenthDeadSeconds"`
	DeclaredWithinMs  float64  `json:"declaredWithinMs"`
	Advice            []string `json:"advice"`
}

const (
	// Redis writes a snapshot or a new append-only file from a fork, and data that beats change meanwhile exists twice; and replicas have
	// buffers. So a server gets twice the memory of its data.
	memoryReserve = 2
	// The largest supported size of a Redis Cluster.
	clusterServers = 1000
	// The maximum number of connections of an API replica to each Redis server, as the tracker limits them.
	poolSize = 8
	// Settings of the API, and their maximum.
	defaultConnections, mostConnections = 16_384, 1_048_576
	defaultTokens, mostTokens           = 262_144, 16_777_216
	defaultTenantWorkers                = 10_000 // the setting tenant-workers
	mostShards                          = 4096

	// The memory of a finished task with its history and its entry in the set of ends; of a task of a queue while a worker holds it, with its
	// entries for the queue and the worker, and after its end; and of a worker with its machine; measured with Redis 7.0.15.
	finishedBytes, heldBytes, heldFinishedBytes, workerBytes = 910, 888, 1064, 1475

	// The memory of an idempotency key and a claim id, and how long each is kept; measured with Redis 7.0.15.
	keyBytes, claimIDBytes = 341, 277
	keyLife, claimIDLife   = 24 * time.Hour, time.Hour
	tokenLife              = time.Hour // of a task token, unless the task requests another

	// The events of a task that succeeds at once: created, dispatched, started, and its end.
	eventsOfALife       = 4
	leastEventsPerShard = 10_000
	fewShards           = 16             // with fewer, each keeps more
	eventsMaxAge        = 24 * time.Hour // finished-retention's default

	// The memory of an event, and of a schedule with its last ten fires; measured with Redis 7.0.15.
	eventBytes, scheduleBytes = 212, 1300
	// The maximum memory of the deliveries of one tenant's webhooks.
	webhookBytes = 64 << 20
)

func (f *Fleet) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.Tasks < 1 {
		refuse("there are no tasks: use 10000000, 10M or 1B")
	}
	if f.Interval < 100*time.Millisecond || f.Interval > 24*time.Hour {
		refuse("an interval of %v is out of bounds: give 100ms to 24h", f.Interval)
	}
	if f.Timeout == 0 {
		f.Timeout = max(3*f.Interval, time.Second)
	}
	if f.Timeout < time.Second || f.Timeout > 24*time.Hour {
		refuse("a timeout of %v is out of bounds: give 1s to 24h", f.Timeout)
	} else if f.Timeout < 2*f.Interval {
		refuse("a timeout of %v is shorter than two intervals of %v: one lost beat would kill a live task", f.Timeout, f.Interval)
	}
	switch f.Way {
	case Single:
		if f.Together > 1 {
			refuse("single beats go one a request: choose the way batch, or worker")
		}
		f.Together = 1
	case Batch:
		if f.Together < 1 || f.Together > 1000 {
			refuse("a batch of %d is out of bounds: a request takes 1 to 1000 beats", f.Together)
		}
	case Worker:
		if f.Together < 1 || f.Together > 1_000_000 {
			refuse("%d tasks a worker is out of bounds: give 1 to 1000000", f.Together)
		}
	default:
		refuse("%q is no way to beat: use single, batch or worker", f.Way)
	}
	if !(f.Headroom >= 0 && f.Headroom <= 0.9) {
		refuse("a headroom of %v is out of bounds: give 0 to 0.9, the share of each core that stays free", f.Headroom)
	}
	if f.Cores < 1 || f.Cores > 256 {
		refuse("a replica of %d cores is out of bounds: give 1 to 256", f.Cores)
	}
	if f.RedisMemory < 256<<20 {
		refuse("a Redis server of less than 256MiB serves no fleet: give for example 32GiB")
	}
	if f.RoundTrip < 0 || f.RoundTrip > time.Second {
		refuse("a round trip of %v is out of bounds: give 0s to 1s", f.RoundTrip)
	}
	if f.Life < 0 || f.Life > 0 && f.Life < f.Interval {
		refuse("a task that lives for %v never beats: its life must be longer than the interval", f.Life)
	}
	if !(f.Keys >= 0 && f.Keys <= 1 && f.ClaimIDs >= 0 && f.ClaimIDs <= 1) {
		refuse("shares of %v with an idempotency key and %v with a claim id are out of bounds: give 0 to 1", f.Keys, f.ClaimIDs)
	}
	if f.EventsPerShard < 0 {
		refuse("%d events a shard are out of bounds: give 100 to 1000000, as events-per-shard takes them", f.EventsPerShard)
	}
	if f.Schedules < 0 || f.Webhooks < 0 {
		refuse("%d schedules and %d webhooks are out of bounds: neither is negative", f.Schedules, f.Webhooks)
	}
	if f.Retention < 0 {
		refuse("a retention of %v is negative", f.Retention)
	}
	return errors.Join(errs...)
}

// Compute creates the plan, for one deployment if that can serve the fleet.
func Compute(f Fleet, c *Costs) (*Plan, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	all := f.Tasks
	for n := int64(1); ; n++ {
		f.Tasks = (all + n - 1) / n
		p := f.plan(c)
		if p.RedisServers > clusterServers && f.Tasks > 1 {
			// Two deployments of half the size need no more servers than one of the full size.
			n = max(n, int64(p.RedisServers)*n/clusterServers-1)
			continue
		}
		p.Deployments = int(n)
		p.advise(&f, c)
		return p, nil
	}
}

// plan computes the plan of one deployment.
func (f *Fleet) plan(c *Costs) *Plan {
	p := &Plan{Tasks: f.Tasks, TimeoutSeconds: f.Timeout.Seconds(), DeclaredWithinMs: float64(f.Timeout.Milliseconds()) + 250}
	tasks, together := float64(f.Tasks), float64(f.Together)
	p.BeatsPerSecond = tasks / f.Interval.Seconds()
	p.RequestsPerSecond = p.BeatsPerSecond / together
	if f.Way == Worker { // a worker's beat is one write, however many tasks it holds
		p.BeatsPerSecond = p.RequestsPerSecond
	}
	finished := 0.0
	if f.Life > 0 {
		p.LivesPerSecond = tasks / f.Life.Seconds()
		finished = p.LivesPerSecond * f.Retention.Seconds()
	}
	cost := c.of(f)
	p.ServerMicros, p.RedisMicros = cost.ServerMicros, cost.RedisMicros

	members := tasks // of the sets that beats are written to
	if f.Way == Worker {
		members = tasks / together
	}
	p.ServerGrowth = c.Growth.at(members, c.Growth.Server)
	p.APIBusyCores = (p.BeatsPerSecond*cost.ServerMicros*p.ServerGrowth + p.LivesPerSecond*c.LifeServerMicros) / 1e6
	p.APICores = p.APIBusyCores / (1 - f.Headroom)
	p.Connections = int64(math.Ceil(tasks / together))
	byCPU, byConnections := ceil(p.APICores/float64(f.Cores)), ceil(float64(p.Connections)/mostConnections)
	p.APIReplicas, p.APIBoundBy = max(2, byCPU), "cpu"
	switch {
	case byConnections > p.APIReplicas:
		p.APIReplicas, p.APIBoundBy = byConnections, "connections"
	case byCPU < 2:
		p.APIBoundBy = "failover"
	}
	p.ConnectionsPerAPI = int64(math.Ceil(float64(p.Connections) / float64(p.APIReplicas)))
	p.TokensPerReplica = int64(math.Ceil(tasks / float64(p.APIReplicas)))
	if f.Way == Worker {
		p.TokensPerReplica = p.ConnectionsPerAPI
	}
	// Tokens of finished tasks are dropped when they expire.
	over := int64(math.Ceil(p.LivesPerSecond * tokenLife.Seconds() / float64(p.APIReplicas)))
	p.TokensRemembered = min(p.TokensPerReplica+over, max(p.TokensPerReplica, defaultTokens), mostTokens)
	p.APIReplicaMemory = c.ReplicaBytes + c.TokenBytes*float64(p.TokensRemembered) +
		c.ConnectionBytes*float64(p.ConnectionsPerAPI)
	p.Sweepers = 2

	taskBytes, ofFinished := c.ofTask(f)
	p.RedisDataBytes = tasks*taskBytes + finished*ofFinished + p.LivesPerSecond*f.Keys*keyLife.Seconds()*keyBytes
	if f.Way == Worker {
		p.RedisDataBytes += tasks/together*workerBytes + p.LivesPerSecond*f.ClaimIDs*claimIDLife.Seconds()*claimIDBytes
	}
	p.RedisDataBytes += float64(f.Schedules) * scheduleBytes
	p.WebhookBytes = float64(f.Webhooks) * webhookBytes
	p.EventsPerSecond = p.LivesPerSecond * eventsOfALife
	c.primaries(p, f, members)
	if f.Life > 0 {
		p.EventsRetentionSeconds = float64(p.Shards) * float64(p.eventsPerShard(f)) / p.EventsPerSecond
	}
	p.RedisServers = 2 * p.RedisPrimaries
	p.RedisConnections = poolSize * (p.APIReplicas + p.Sweepers)
	p.MassDeathSeconds = tasks / 10 / (c.DeathsPerSecond * float64(p.RedisPrimaries))
	return p
}

// of returns the cost of a beat for the fleet. A request costs the same however many beats it contains, plus the cost of each beat.
func (c *Costs) of(f *Fleet) Share {
	cost := c.Single.Share
	switch f.Way {
	case Batch:
		n := float64(c.Batch.Beats)
		at := func(one, many float64) float64 {
			request := max((one-many)*n/(n-1), 0)
			return max(one-request, 0) + request/float64(f.Together)
		}
		cost = Share{at(cost.ServerMicros, c.Batch.ServerMicros), at(cost.RedisMicros, c.Batch.RedisMicros)}
	case Worker:
		if c.Worker != nil {
			return c.Worker.Share // it has no progress
		}
	}
	without := 1 - f.Progress
	return Share{
		ServerMicros: max(cost.ServerMicros-without*c.Progress.ServerMicros, cost.ServerMicros/10),
		RedisMicros:  max(cost.RedisMicros-without*c.Progress.RedisMicros, cost.RedisMicros/10),
	}
}

// at returns the additional cost of a beat with so many tasks. Sets are trees: the cost grows with the logarithm.
func (g *Growth) at(tasks, measured float64) float64 {
	return max(1, 1+(measured-1)*math.Log(tasks/float64(g.FromTasks))/math.Log(float64(g.ToTasks)/float64(g.FromTasks)))
}

// primaries finds the smallest number of Redis primaries that are neither too busy nor too full. A primary runs commands on one core.
func (c *Costs) primaries(p *Plan, f *Fleet, members float64) {
	data := p.RedisDataBytes
	for n := 1; ; n++ {
		if n == 2 {
			n = 3 // the minimum of a Cluster
		}
		p.Shards = shardsFor(n)
		fullest := math.Ceil(float64(p.Shards)/float64(n)) / float64(p.Shards) // share of the primary with the most shards
		p.RedisGrowth = c.Growth.at(members*fullest, c.Growth.Redis)
		p.RedisBusyCores = (p.BeatsPerSecond*p.RedisMicros*p.RedisGrowth + p.LivesPerSecond*c.LifeRedisMicros) / 1e6
		p.RedisBusiestShare = p.RedisBusyCores * fullest
		recent := p.EventsPerSecond * cmp.Or(f.Retention, eventsMaxAge).Seconds()
		p.EventsBytes = min(float64(p.Shards)*float64(p.eventsPerShard(f)), recent) * eventBytes
		p.RedisDataBytes = data + p.EventsBytes
		p.RedisMemoryBytes = p.RedisDataBytes * fullest * memoryReserve
		idle, fits := p.RedisBusiestShare <= 1-f.Headroom, p.RedisMemoryBytes <= f.RedisMemory
		if idle && fits || n >= mostShards { // above that the deployment is split
			p.RedisPrimaries = n
			p.flushes(f, c)
			return
		}
		p.RedisBoundBy = "cpu"
		if idle {
			p.RedisBoundBy = "memory"
		}
	}
}

// flushes computes how beats are batched. Each replica has one flush under way to each primary, and the next one is collected meanwhile.
// In a Cluster a flush is one call for each shard that it has beats for. So a beat waits at most for one flush of each replica, and
// the longer flushes wait, the more beats they contain.
func (p *Plan) flushes(f *Fleet, c *Costs) {
	lanes := float64(p.APIReplicas)
	shards := 1.0 // one server gets a flush in one call
	if p.RedisPrimaries > 1 {
		shards = math.Ceil(float64(p.Shards) / float64(p.RedisPrimaries))
	}
	perLane := p.BeatsPerSecond / lanes / float64(p.RedisPrimaries)
	calls := shards
	for range 50 { // fewer beats, fewer calls, shorter waits, fewer beats
		wait := (lanes*calls*c.FlushMicros/1e6 + f.RoundTrip.Seconds()) / max(1-p.RedisBusiestShare, 0.01)
		p.FlushWaitMs, p.CallsPerFlush = wait*1e3, calls
		p.BeatsPerFlush = max(1, perLane*wait)
		calls = min(shards, p.BeatsPerFlush)
	}
}

// eventsPerShard returns how many events each shard keeps.
func (p *Plan) eventsPerShard(f *Fleet) int64 {
	if f.EventsPerShard > 0 {
		return f.EventsPerShard
	}
	return leastEventsPerShard * int64(max(1, fewShards/p.Shards))
}

// shardsFor returns the default for one server, or for a Cluster: there at least four for each primary, so that shards can be distributed
// evenly. More would split the flushes.
func shardsFor(primaries int) int {
	if primaries == 1 {
		return 4
	}
	n := 64
	for n < 4*primaries && n < mostShards {
		n *= 2
	}
	return n
}

func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }

// ofTask returns the memory of a task while it runs, and after its end.
func (c *Costs) ofTask(f *Fleet) (running, finished float64) {
	if f.Way == Worker {
		return max(c.TaskBytes, heldBytes), max(c.TaskBytes, heldFinishedBytes)
	}
	return c.TaskBytes, max(c.TaskBytes, finishedBytes)
}
