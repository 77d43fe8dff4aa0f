package v1

// Stats is the answer of GET /v1/stats.
type Stats struct {
	// Time is when it was counted, at most a second ago.
	Time Time `json:"time"`
	// TenantID and WorkspaceID are the scope of the levels; null: all.
	TenantID    *string `json:"tenantId"`
	WorkspaceID *string `json:"workspaceId"`
	Levels
	// Rates are those of the newest step, of the whole deployment.
	Rates StatsRates `json:"rates"`
	// LastHour is the sum of the steps, of the whole deployment.
	LastHour StatsCounts `json:"lastHour"`
	// BeatGapRatio is how close live tasks and workers came to their timeouts in the last hour, in the whole deployment; null: not sampled.
	BeatGapRatio *BeatGapRatio `json:"beatGapRatio"`
	Series       StatsSeries   `json:"series"`
}

// BeatGapRatio is the time between two heartbeats of a live task or worker, divided by its heartbeat timeout: at 1 it would have timed out.
// It is estimated from a histogram.
type BeatGapRatio struct {
	// Kind is which of task and worker came closer to its timeout; the numbers are about that one.
	Kind string `json:"kind"`
	// P50 and P99 are the 50th and 99th percentile of the gaps.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Max is an upper bound of all gaps, to a tenth.
	Max float64 `json:"max"`
	// Samples is the number of gaps measured.
	Samples int64 `json:"samples"`
}

// Levels are the numbers at a moment.
type Levels struct {
	// Tasks are by state.
	Tasks    map[string]int `json:"tasks"`
	Workers  WorkerLevels   `json:"workers"`
	Machines MachineCounts  `json:"machines"`
	// OldestOverdueMs is how long the oldest overdue entry of the sweepers has been overdue, in the whole deployment.
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

// StatsRates are rates per second and delays.
type StatsRates struct {
	BeatsPerSecond    float64 `json:"beatsPerSecond"`
	RefusedPerSecond  float64 `json:"refusedPerSecond"`
	ClaimsPerSecond   float64 `json:"claimsPerSecond"`
	ClaimedPerSecond  float64 `json:"claimedTasksPerSecond"`
	VerdictsPerSecond float64 `json:"verdictsPerSecond"`
	// SweepLagMs is the age of the oldest overdue entry at the sweepers' last sweep, for the worst of them.
	SweepLagMs int64 `json:"sweepLagMs"`
	// BeatP99Ms is the 99th percentile of the duration of heartbeats, estimated from a histogram; null: there were none.
	BeatP99Ms *float64 `json:"beatP99Ms"`
}

// StatsCounts are counts in a period.
type StatsCounts struct {
	// Beats are accepted heartbeats.
	Beats int64 `json:"beats"`
	// Refused are refused heartbeats by error code.
	Refused map[string]int64 `json:"refused"`
	// Verdicts are attempts that Lubdub ended, by reason.
	Verdicts map[string]int64 `json:"verdicts"`
	// Claims are by result: tasks, nothing, refused.
	Claims       map[string]int64 `json:"claims"`
	ClaimedTasks int64            `json:"claimedTasks"`
}

// StatsSeries has the counts of the last hour, on all replicas.
type StatsSeries struct {
	// StepMs is how long a step is.
	StepMs int64 `json:"stepMs"`
	// Steps are in order of time. Steps in which no replica reported are left out.
	Steps []StatsStep `json:"steps"`
}

// StatsStep is one step of a series.
type StatsStep struct {
	// At is when it began.
	At Time `json:"at"`
	// Replicas is how many replicas reported.
	Replicas int `json:"replicas"`
	// Levels are the levels of the whole deployment: null if they were not counted, or the token is not valid for all scopes.
	Levels *Levels `json:"levels"`
	StatsCounts
	SweepLagMs int64    `json:"sweepLagMs"`
	BeatP99Ms  *float64 `json:"beatP99Ms"`
}

// VerdictCounts is the answer of GET /v1/stats/verdicts.
type VerdictCounts struct {
	// Since is the start of the period.
	Since Time `json:"since"`
	// Total is how many there are.
	Total int `json:"total"`
	// Truncated reports that more than 100,000 were found, or 10,000 if they are grouped by a label: the oldest are omitted.
	Truncated bool `json:"truncated"`
	// Groups have the most first; beyond 100 they are left out.
	Groups []VerdictGroup `json:"groups"`
}

// VerdictGroup counts verdicts with the same values of the group's fields. A missing or unknown value is empty.
type VerdictGroup struct {
	MachineID *string `json:"machineId,omitempty"`
	Version   *string `json:"version,omitempty"`
	Type      *string `json:"type,omitempty"`
	Queue     *string `json:"queue,omitempty"`
	Reason    *string `json:"reason,omitempty"`
	WorkerID  *string `json:"workerId,omitempty"`
	// Labels are the requested labels of their tasks.
	Labels map[string]string `json:"labels,omitempty"`
	Count  int               `json:"count"`
	// LastAt is the time of the last one.
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
	// DifferingSettings names settings that differ between replicas and should not.
	DifferingSettings []string `json:"differingSettings"`
	// RecentlyLost are the workers of the scope that were lost in the last hour, newest first, 100 at most. It is empty where the
	// scope is not one workspace.
	RecentlyLost []LostWorker `json:"recentlyLost"`
	// RecentlyLostTotal is how many were lost in the last hour, those included that are not listed.
	RecentlyLostTotal int `json:"recentlyLostTotal"`
	// PoisonTasks are the tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at
	// most. It is empty where the scope is not one workspace.
	PoisonTasks []PoisonTask `json:"poisonTasks"`
	// RecentFailures are the attempts of the scope that workers reported as FAILED in the last hour. It is empty where the scope is not
	// one workspace.
	RecentFailures Failures `json:"recentFailures"`
	// LogsURL is the setting logs-url: the template of links to logs. It is null where none is set.
	LogsURL *string `json:"logsUrl"`
	// Summary is whether Lubdub or the workers are at fault, in a sentence.
	Summary Summary `json:"summary"`
	// Findings are the evidence: failures first, then warnings, then what is well; with the same severity, those about Lubdub and Redis
	// come before those about the workers and queues of the scope.
	Findings []Finding `json:"findings"`
}

// SystemUnavailable is the answer of GET /v1/system with status 503, while no Redis responds: what the server knows without it. Lists of
// replicas, shards, workers and tasks are empty and counts are 0, as nothing is known of them.
type SystemUnavailable struct {
	// Error is store_unavailable.
	Error string `json:"error"`
	// Message describes what happened and what to do about it.
	Message string `json:"message"`
	System
}

// LostWorker is a worker that ended unexpectedly, and what became of its tasks.
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
	// Failed tasks could not be retried: they have no retry policy, or cancellation was requested.
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

// Failures are attempts that workers reported as FAILED.
type Failures struct {
	// Total is how many there were in the last hour, and LastFiveMinutes in its last five minutes.
	Total           int `json:"total"`
	LastFiveMinutes int `json:"lastFiveMinutes"`
	// Succeeded is how many tasks succeeded in the last five minutes.
	Succeeded int `json:"succeeded"`
	// Truncated reports that there were more in the last hour: 1,000 are counted in each shard, the newest.
	Truncated bool `json:"truncated"`
	// Groups have those with the most failures of the last five minutes first, then those with the most of the hour, 20 at most.
	Groups []FailureGroup `json:"groups"`
}

// FailureGroup is how many attempts of tasks of one queue and type failed with similar errors.
type FailureGroup struct {
	Queue *string `json:"queue"`
	Type  *string `json:"type"`
	// Error is the category and the first line of the message, 160 bytes at most, with … for each word that has digits. It is empty if
	// the worker gave neither.
	Error string `json:"error"`
	// Count is how many failed in the last hour, and LastFiveMinutes in its last five minutes.
	Count           int  `json:"count"`
	LastFiveMinutes int  `json:"lastFiveMinutes"`
	FirstAt         Time `json:"firstAt"`
	LastAt          Time `json:"lastAt"`
	// TaskID is the task that failed last.
	TaskID string `json:"taskId"`
	// Versions are those of the workers, the one with the most failures first, 5 at most.
	Versions []string `json:"versions"`
	// SuspectVersion is set in the first group, if all its failures are of one version, and so few of the workers that could run its
	// tasks have it that this is not by chance.
	SuspectVersion *SuspectVersion `json:"suspectVersion"`
}

// SuspectVersion is a version of workers that may be the cause of failures.
type SuspectVersion struct {
	Version string `json:"version"`
	// Workers is how many workers run it, of all that could run the tasks; OFFLINE ones are not counted.
	Workers int `json:"workers"`
	Of      int `json:"of"`
}

// SystemReplica is one Lubdub process.
type SystemReplica struct {
	ReplicaID string   `json:"replicaId"`
	Version   string   `json:"version"`
	Commit    *string  `json:"commit"`
	Roles     []string `json:"roles"`
	// Since is when it started.
	Since Time `json:"since"`
	// HeardAt is when it last reported. A replica that is silent for 30 s is no longer shown.
	HeardAt Time `json:"heardAt"`
}

// SystemShard is one slice of the keyspace.
type SystemShard struct {
	Shard int `json:"shard"`
	// Sweeper is the process that sweeps it first; null: it is not swept.
	Sweeper *string `json:"sweeper"`
	// LagMs is how long the oldest overdue entry has been overdue; 0: none is.
	LagMs int64 `json:"lagMs"`
	// StoppedMs is for how long its time has been stopped.
	StoppedMs int64 `json:"stoppedMs"`
	// OutageCreditMs is how much outage time of the last hour was not counted as silence.
	OutageCreditMs int64 `json:"outageCreditMs"`
	// Recoveries are ended workers whose attempts have not all been taken yet.
	Recoveries int `json:"recoveries"`
	// Events is the number of events in its stream; the oldest is EventsAgeMs old.
	Events      int   `json:"events"`
	EventsAgeMs int64 `json:"eventsAgeMs"`
}

// SystemRedis is one Redis server. Values that it does not report are null.
type SystemRedis struct {
	// Address is null for the one inside a Lubdub process.
	Address *string `json:"address"`
	// Error is why it does not answer; null: it does.
	Error   *string `json:"error"`
	Version *string `json:"version"`
	Role    *string `json:"role"`
	// Replicas is the number of connected replicas.
	Replicas    int   `json:"replicas"`
	MemoryBytes int64 `json:"memoryBytes"`
	// MaxMemoryBytes is its memory limit; 0: none.
	MaxMemoryBytes  int64   `json:"maxMemoryBytes"`
	MaxMemoryPolicy *string `json:"maxMemoryPolicy"`
	AppendOnly      bool    `json:"appendOnly"`
	LastSaveAt      Time    `json:"lastSaveAt"`
	RoundTripMs     float64 `json:"roundTripMs"`
	// ClockOffsetMs is how far its clock is ahead of the clock of the replica that answers.
	ClockOffsetMs float64 `json:"clockOffsetMs"`
}

// SystemBrake is the mass-expiry brake of the replica that answers.
type SystemBrake struct {
	Enabled  bool `json:"enabled"`
	SharePct int  `json:"sharePct"`
	// Held is the number of its entries: attempts and workers that it holds, and scopes that were released or reported.
	Held int `json:"held"`
}

// SystemReconciler is what the reconcilers of all replicas do.
type SystemReconciler struct {
	// RatePerSecond is how many entries they check; 0: none.
	RatePerSecond    int   `json:"ratePerSecond"`
	ExaminedLastHour int64 `json:"examinedLastHour"`
	RepairedLastHour int64 `json:"repairedLastHour"`
}

// SystemWebhooks is the state of the webhooks of all tenants.
type SystemWebhooks struct {
	// DroppedLastHour is how many pending deliveries were dropped because those of their tenant exceeded the size limit.
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
