package v1

// Stats is the answer of GET /v1/stats.
type Stats struct {
	// Time is when it was counted, at most a second ago.
	Time Time `json:"time"`
	// TenantID and WorkspaceID say of what scope the levels are; null: of all.
	TenantID    *string `json:"tenantId"`
	WorkspaceID *string `json:"workspaceId"`
	Levels
	// Rates are those of the newest step, of the whole deployment.
	Rates StatsRates `json:"rates"`
	// LastHour is the sum of the steps, of the whole deployment.
	LastHour StatsCounts `json:"lastHour"`
	// BeatGapRatio is how close live tasks and workers came to their timeouts in the last hour, in the whole deployment; null: it was
	// not sampled.
	BeatGapRatio *BeatGapRatio `json:"beatGapRatio"`
	Series       StatsSeries   `json:"series"`
}

// BeatGapRatio is the time between two heartbeats of a live task or worker, divided by its heartbeat timeout: 1 would have been its end.
// It is estimated from a histogram.
type BeatGapRatio struct {
	// Kind is what came closer to its timeouts, and what the numbers are about: task or worker.
	Kind string `json:"kind"`
	// P50 is what half of the gaps stay below, P99 what all but one in a hundred do.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Max is what all stay below, to a tenth.
	Max float64 `json:"max"`
	// Samples is how many gaps were looked at.
	Samples int64 `json:"samples"`
}

// Levels are how many there are at a moment.
type Levels struct {
	// Tasks are by state.
	Tasks    map[string]int `json:"tasks"`
	Workers  WorkerLevels   `json:"workers"`
	Machines MachineCounts  `json:"machines"`
	// OldestOverdueMs is how long what sweepers should have taken first has been overdue, in the whole deployment.
	OldestOverdueMs int64 `json:"oldestOverdueMs"`
}

// WorkerLevels are workers by status, and those that are not OFFLINE by liveness.
type WorkerLevels struct {
	Online   int `json:"online"`
	Draining int `json:"draining"`
	Offline  int `json:"offline"`
	Fresh    int `json:"fresh"`
	Late     int `json:"late"`
	Lost     int `json:"lost"`
}

// StatsRates are what goes on.
type StatsRates struct {
	BeatsPerSecond    float64 `json:"beatsPerSecond"`
	RefusedPerSecond  float64 `json:"refusedPerSecond"`
	ClaimsPerSecond   float64 `json:"claimsPerSecond"`
	ClaimedPerSecond  float64 `json:"claimedTasksPerSecond"`
	VerdictsPerSecond float64 `json:"verdictsPerSecond"`
	// SweepLagMs is the age of the oldest overdue entry when sweepers last looked, the worst of them.
	SweepLagMs int64 `json:"sweepLagMs"`
	// BeatP99Ms is how long all but one in a hundred beats took at most, estimated from a histogram; null: there were none.
	BeatP99Ms *float64 `json:"beatP99Ms"`
}

// StatsCounts are what has been counted in a time.
type StatsCounts struct {
	// Beats are those that were accepted.
	Beats int64 `json:"beats"`
	// Refused are refused beats by error code.
	Refused map[string]int64 `json:"refused"`
	// Verdicts are attempts that Lubdub ended, by reason.
	Verdicts map[string]int64 `json:"verdicts"`
	// Claims are by what they got: tasks, nothing, refused.
	Claims       map[string]int64 `json:"claims"`
	ClaimedTasks int64            `json:"claimedTasks"`
}

// StatsSeries is what went on in the last hour, on all replicas.
type StatsSeries struct {
	// StepMs is how long a step is.
	StepMs int64 `json:"stepMs"`
	// Steps are in their order. Those in which no replica reported are left out.
	Steps []StatsStep `json:"steps"`
}

// StatsStep is one step of a series.
type StatsStep struct {
	// At is when it began.
	At Time `json:"at"`
	// Replicas is how many have reported.
	Replicas int `json:"replicas"`
	// Levels are what there was in the whole deployment: null where nobody counted it, or where the token does not open all
	// scopes that there are.
	Levels *Levels `json:"levels"`
	StatsCounts
	SweepLagMs int64    `json:"sweepLagMs"`
	BeatP99Ms  *float64 `json:"beatP99Ms"`
}

// VerdictCounts is the answer of GET /v1/stats/verdicts.
type VerdictCounts struct {
	// Since is from when on verdicts were counted.
	Since Time `json:"since"`
	// Total is how many there are.
	Total int `json:"total"`
	// Truncated reports that there are more than 100,000, or 10,000 where they are grouped by a label: the oldest are left out.
	Truncated bool `json:"truncated"`
	// Groups have the most first; beyond 100 they are left out.
	Groups []VerdictGroup `json:"groups"`
}

// VerdictGroup is how many verdicts have the same values of what was asked for. A value that there is none of, or that is not
// known any more, is empty.
type VerdictGroup struct {
	MachineID *string `json:"machineId,omitempty"`
	Version   *string `json:"version,omitempty"`
	Type      *string `json:"type,omitempty"`
	Queue     *string `json:"queue,omitempty"`
	Reason    *string `json:"reason,omitempty"`
	WorkerID  *string `json:"workerId,omitempty"`
	// Labels are those of their tasks that were asked for.
	Labels map[string]string `json:"labels,omitempty"`
	Count  int               `json:"count"`
	// LastAt is when the last of them fell.
	LastAt Time `json:"lastAt"`
}

// System is the answer of GET /v1/system.
type System struct {
	// Time is when it was read, at most a second ago.
	Time     Time            `json:"time"`
	Replicas []SystemReplica `json:"replicas"`
	Shards   []SystemShard   `json:"shards"`
	// Redis are the servers that have shards.
	Redis      []SystemRedis    `json:"redis"`
	Brake      SystemBrake      `json:"brake"`
	Reconciler SystemReconciler `json:"reconciler"`
	Webhooks   SystemWebhooks   `json:"webhooks"`
	// DifferingSettings names the settings that are not the same on all replicas and should be.
	DifferingSettings []string `json:"differingSettings"`
	// RecentlyLost are the workers of the scope that were lost in the last hour, newest first, 100 at most. It is empty where the
	// scope is not one workspace.
	RecentlyLost []LostWorker `json:"recentlyLost"`
	// RecentlyLostTotal is how many were lost in the last hour, those included that are not listed.
	RecentlyLostTotal int `json:"recentlyLostTotal"`
	// PoisonTasks are the tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at
	// most. It is empty where the scope is not one workspace.
	PoisonTasks []PoisonTask `json:"poisonTasks"`
	// Summary is whether it is them or us, in a sentence.
	Summary Summary `json:"summary"`
	// Findings are what it rests on: failures first, then warnings, then what is well; of the same severity those about Lubdub and what it
	// stands on come before those about the workers and queues of the scope.
	Findings []Finding `json:"findings"`
}

// SystemUnavailable is the answer of GET /v1/system with status 503, while no Redis responds: what the server knows without it. Lists of
// replicas, shards, workers and tasks are empty and counts are 0, as nothing is known of them.
type SystemUnavailable struct {
	// Error is store_unavailable.
	Error string `json:"error"`
	// Message says what happened and what to do about it.
	Message string `json:"message"`
	System
}

// LostWorker is a worker that ended without having been asked to, and what became of the tasks that it held.
type LostWorker struct {
	WorkerID  string  `json:"workerId"`
	Name      *string `json:"name"`
	MachineID string  `json:"machineId"`
	Hostname  *string `json:"hostname"`
	Queue     string  `json:"queue"`
	// LastHeartbeatAt is null when it never sent one.
	LastHeartbeatAt Time `json:"lastHeartbeatAt"`
	LostAt          Time `json:"lostAt"`
	// Reason is HEARTBEAT_TIMEOUT, SUPERSEDED or FORCED_OFFLINE.
	Reason string `json:"reason"`
	// Attempts were taken from it so far; each task is in one of the three counts below.
	Attempts int `json:"attempts"`
	Requeued int `json:"requeued"`
	// Failed tasks had no retries left to use: they have no retry policy, or were to be cancelled.
	Failed int `json:"failed"`
	// Exhausted tasks failed because their retries are used up.
	Exhausted int `json:"exhausted"`
	// StaleCount24h is how often this worker, or one that it replaced, stopped sending heartbeats in the last 24 h.
	StaleCount24h int `json:"staleCount24h"`
	// Flapping is true when that is often, MachineFlapping when all workers of its machine were lost at once that often.
	Flapping        bool `json:"flapping"`
	MachineFlapping bool `json:"machineFlapping"`
}

// PoisonTask is a task that may be what ends its workers: several were lost while they ran it.
type PoisonTask struct {
	TaskID string  `json:"taskId"`
	Queue  *string `json:"queue"`
	Type   *string `json:"type"`
	State  State   `json:"state"`
	// Workers are those that were lost with it in the last hour, newest first, 10 at most.
	Workers []LostWorker `json:"workers"`
	// LastLostAt is when its newest lost attempt was ended.
	LastLostAt Time `json:"lastLostAt"`
	// Errors are how its attempts ended, grouped, most first.
	Errors []ErrorGroup `json:"errors"`
}

// ErrorGroup is how many attempts ended in the same way.
type ErrorGroup struct {
	// Error is the outcome with its reason, or with the category and the message that the worker reported.
	Error string `json:"error"`
	Count int    `json:"count"`
}

// SystemReplica is one Lubdub process.
type SystemReplica struct {
	ReplicaID string   `json:"replicaId"`
	Version   string   `json:"version"`
	Commit    *string  `json:"commit"`
	Roles     []string `json:"roles"`
	// Since is when it started.
	Since Time `json:"since"`
	// HeardAt is when it last said that it is there. One that is silent for 30 s is not shown any more.
	HeardAt Time `json:"heardAt"`
}

// SystemShard is one slice of the keyspace.
type SystemShard struct {
	Shard int `json:"shard"`
	// Sweeper looks after it first; null: nobody sweeps it.
	Sweeper *string `json:"sweeper"`
	// LagMs is how long what is overdue most has been so; 0: nothing is.
	LagMs int64 `json:"lagMs"`
	// StoppedMs is for how long its time has been standing still.
	StoppedMs int64 `json:"stoppedMs"`
	// OutageCreditMs is what outages of the last hour took out of everyone's silence.
	OutageCreditMs int64 `json:"outageCreditMs"`
	// Recoveries are ended workers whose attempts have not all been taken yet.
	Recoveries int `json:"recoveries"`
	// Events are in its stream; the oldest is of EventsAgeMs ago.
	Events      int   `json:"events"`
	EventsAgeMs int64 `json:"eventsAgeMs"`
}

// SystemRedis is one Redis server. What it does not say is null.
type SystemRedis struct {
	// Address is null for the one inside a Lubdub process.
	Address *string `json:"address"`
	// Error says why it does not answer; null: it does.
	Error   *string `json:"error"`
	Version *string `json:"version"`
	Role    *string `json:"role"`
	// Replicas are connected to it.
	Replicas    int   `json:"replicas"`
	MemoryBytes int64 `json:"memoryBytes"`
	// MaxMemoryBytes is what it may use; 0: as much as there is.
	MaxMemoryBytes  int64   `json:"maxMemoryBytes"`
	MaxMemoryPolicy *string `json:"maxMemoryPolicy"`
	AppendOnly      bool    `json:"appendOnly"`
	LastSaveAt      Time    `json:"lastSaveAt"`
	RoundTripMs     float64 `json:"roundTripMs"`
	// ClockOffsetMs is how far its clock is ahead of that of the replica that answers.
	ClockOffsetMs float64 `json:"clockOffsetMs"`
}

// SystemBrake is the mass expiry brake of the replica that answers.
type SystemBrake struct {
	Enabled  bool `json:"enabled"`
	SharePct int  `json:"sharePct"`
	// Held is how much it remembers: attempts and workers that it holds, and scopes that were released or told of.
	Held int `json:"held"`
}

// SystemReconciler is what the reconcilers of all replicas do.
type SystemReconciler struct {
	// RatePerSecond is how many entries they look at; 0: there is none.
	RatePerSecond    int   `json:"ratePerSecond"`
	ExaminedLastHour int64 `json:"examinedLastHour"`
	RepairedLastHour int64 `json:"repairedLastHour"`
}

// SystemWebhooks is how the webhooks of all tenants do.
type SystemWebhooks struct {
	// DroppedLastHour is how many pending deliveries were dropped since those of their tenant took too many bytes.
	DroppedLastHour int64 `json:"droppedLastHour"`
}

// ScopeList is the answer of GET /v1/scopes.
type ScopeList struct {
	Scopes        []Scope `json:"scopes"`
	NextPageToken string  `json:"nextPageToken,omitempty"`
}

// Scope is a tenant's workspace that has tasks or workers.
type Scope struct {
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
}
