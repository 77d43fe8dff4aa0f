package v1

// WorkerStatus is what a worker may do.
type WorkerStatus string

const (
	Online   WorkerStatus = "ONLINE"   // claims tasks
	Draining WorkerStatus = "DRAINING" // finishes what it holds and claims nothing
	Offline  WorkerStatus = "OFFLINE"  // is gone for good; a process that comes back registers anew
)

// WorkerStatuses lists every status in the order of a worker's life.
var WorkerStatuses = []WorkerStatus{Online, Draining, Offline}

// RegisterWorkerRequest is the body of POST /v1/workers.
type RegisterWorkerRequest struct {
	// Queue that the worker claims from.
	Queue string `json:"queue"`
	// Types of tasks that it runs, at least one.
	Types []string `json:"types"`
	// Runtimes that it has.
	Runtimes []string `json:"runtimes,omitempty"`
	// Name is for people; a worker that is started again under its name is known as the same.
	Name string `json:"name,omitempty"`
	// MachineID is the host that it runs on; absent: the hostname, made an id where it is none, else the worker is its
	// own machine.
	MachineID string `json:"machineId,omitempty"`
	// Hostname and PID together make its identity: the same ones with the same queue, machine and name take the place of
	// the registration before. In containers, where every process may be pid 1, a name, machineId or hostname of its own
	// keeps each from taking another's place.
	Hostname string `json:"hostname,omitempty"`
	// PID is its process id; 0 and absent: not said.
	PID int `json:"pid,omitempty"`
	// Version of the worker's program.
	Version string `json:"version,omitempty"`
	// MaxConcurrent is how many tasks it holds at most. Default 100; 0 counts as 1.
	MaxConcurrent *int `json:"maxConcurrent,omitempty"`
	// Labels are up to 64 pairs to select the worker by.
	Labels map[string]string `json:"labels,omitempty"`
	// ProbeURL is asked, where the deployment probes, before a late worker is declared dead.
	ProbeURL string `json:"probeUrl,omitempty"`
	// RegistrationID is drawn by the process for each registration, and makes its repeats safe as the header
	// Idempotency-Key does: they get the first answer and supersede nobody, however late they come. It is kept for 24
	// hours, or for as long as OFFLINE workers are where that is shorter.
	RegistrationID string `json:"registrationId,omitempty"`
}

// RegisterWorkerResponse is the answer to a registration, which counts as the first beat.
type RegisterWorkerResponse struct {
	WorkerID  string `json:"workerId"`
	MachineID string `json:"machineId"`
	// WorkerToken opens the worker's own calls.
	WorkerToken    string `json:"workerToken"`
	TokenExpiresAt Time   `json:"tokenExpiresAt"`
	// HeartbeatIntervalMs is how often the worker is to beat; the server chooses.
	HeartbeatIntervalMs int64 `json:"heartbeatIntervalMs"`
	// HeartbeatTimeoutMs is how long it may be silent.
	HeartbeatTimeoutMs int64 `json:"heartbeatTimeoutMs"`
	// Superseded is the worker with the same identity whose place this one took.
	Superseded string `json:"superseded,omitempty"`
	// ShouldDrain is true where the worker's machine is drained: the worker beats and claims nothing until a heartbeat answers
	// shouldDrain false, once the machine is resumed. Absent otherwise.
	ShouldDrain bool `json:"shouldDrain,omitempty"`
}

// WorkerHeartbeatRequest is the body of POST /v1/workers/{workerId}/heartbeat; all of it is optional.
type WorkerHeartbeatRequest struct {
	// ActiveCount is how many tasks it works on. Those that it did not claim count as load when workers are selected.
	ActiveCount *int `json:"activeCount,omitempty"`
	// Seq rises from beat to beat; required with deltas. A repeated one adds nothing, and the inventory of one that is
	// not higher than the last takes nothing from the worker.
	Seq *int64 `json:"seq,omitempty"`
	// CompletedDelta is how many tasks it completed since the last beat that was answered.
	CompletedDelta int64 `json:"completedDelta,omitempty"`
	// FailedDelta is how many failed since then.
	FailedDelta int64 `json:"failedDelta,omitempty"`
	// Tasks are all the attempts that it has, if it lists them: at most its maxConcurrent, and 1,000 that have ended without its
	// knowing. An attempt that two beats in a row miss is lost.
	Tasks []WorkerTaskItem `json:"tasks,omitempty"`
}

// WorkerTaskItem is one attempt in a worker's inventory.
type WorkerTaskItem struct {
	TaskID  string `json:"taskId"`
	Attempt int    `json:"attempt"`
	// ProgressPct is how far it has come, 0 to 100.
	ProgressPct *float64 `json:"progressPct,omitempty"`
	// Message says it in words.
	Message *string `json:"message,omitempty"`
}

// WorkerHeartbeatResponse is the answer to a worker's beat.
type WorkerHeartbeatResponse struct {
	Accepted bool `json:"accepted"`
	// ShouldDrain asks the worker to claim nothing more, to finish what it holds and to deregister.
	ShouldDrain bool `json:"shouldDrain"`
	// DrainDeadline is when what it still holds is handed to others.
	DrainDeadline Time `json:"drainDeadline,omitzero"`
	// CancelTasks are attempts to stop gracefully. They are repeated until their delivery is recorded.
	CancelTasks []CancelTask `json:"cancelTasks"`
	// LostTasks are attempts that are not the worker's any more; it must stop them at once.
	LostTasks           []LostTask `json:"lostTasks"`
	HeartbeatIntervalMs int64      `json:"heartbeatIntervalMs"`
	HeartbeatTimeoutMs  int64      `json:"heartbeatTimeoutMs"`
	ServerTime          Time       `json:"serverTime"`
	// WorkerToken is a fresh one, in the last third of the old one's life.
	WorkerToken    string `json:"workerToken,omitempty"`
	TokenExpiresAt Time   `json:"tokenExpiresAt,omitzero"`
}

// CancelTask is an attempt to stop gracefully.
type CancelTask struct {
	TaskID  string  `json:"taskId"`
	Attempt int     `json:"attempt"`
	Reason  *string `json:"reason"`
}

// LostTask is an attempt that is not the worker's any more.
type LostTask struct {
	TaskID  string `json:"taskId"`
	Attempt int    `json:"attempt"`
	// Error is the code that a beat of the attempt would be refused with.
	Error string `json:"error"`
}

// DeregisterRequest is the body of POST /v1/workers/{workerId}/deregister.
type DeregisterRequest struct {
	// Drain lets it finish what it holds first; else it is OFFLINE at once and its tasks go to others.
	Drain bool `json:"drain,omitempty"`
	// Reason is shown with the worker.
	Reason string `json:"reason,omitempty"`
}

// ReasonRequest is the body of what needs no more than a reason.
type ReasonRequest struct {
	// Reason is shown with the worker where it ends or is cordoned, and recorded in the event.
	Reason string `json:"reason,omitempty"`
}

// DrainRequest is the body of the drain of one worker or machine.
type DrainRequest struct {
	// Reason is shown with the worker.
	Reason string `json:"reason,omitempty"`
	// DeadlineMs is how long until what is still held is handed to others; absent: never.
	DeadlineMs *int64 `json:"deadlineMs,omitempty"`
}

// ActOnWorkersRequest is the body of POST /v1/workers:cordon, :uncordon and :resume.
type ActOnWorkersRequest struct {
	// Selector names the workers; all that it says must match, and it must say something.
	Selector WorkerSelector `json:"selector"`
	// Reason is recorded in the events; that of a cordon is shown with the workers.
	Reason string `json:"reason,omitempty"`
	// DryRun only counts.
	DryRun bool `json:"dryRun,omitempty"`
}

// OfflineWorkersRequest is the body of POST /v1/workers:offline.
type OfflineWorkersRequest struct {
	// Selector names the workers; all that it says must match. It or silentForMs must say something.
	Selector SilentSelector `json:"selector,omitzero"`
	// SilentForMs may stand here as well as in the selector, once.
	SilentForMs *int64 `json:"silentForMs,omitempty"`
	// Reason is shown with the workers and recorded in the events.
	Reason string `json:"reason,omitempty"`
	// DryRun only counts.
	DryRun bool `json:"dryRun,omitempty"`
}

// SilentSelector names workers, also by their silence.
type SilentSelector struct {
	WorkerSelector
	// SilentForMs is for how long they must have been silent, outages left out. One that is heard before its turn is left
	// alone.
	SilentForMs *int64 `json:"silentForMs,omitempty"`
}

// ActOnWorkersResponse counts what an act on many workers did.
type ActOnWorkersResponse struct {
	// Matched workers are ONLINE or DRAINING and what the selector names. A selector that names none is 404, unless it
	// is only counted or they are to be OFFLINE.
	Matched int `json:"matched"`
	// Done is how many of them are now as the act wants them.
	Done   int  `json:"done"`
	DryRun bool `json:"dryRun"`
	// WorkerIDs of those that match.
	WorkerIDs []string `json:"workerIds"`
}

// DrainWorkersRequest is the body of POST /v1/workers:drain.
type DrainWorkersRequest struct {
	DrainRequest
	// Selector names the workers; all that it says must match, and it must say something.
	Selector WorkerSelector `json:"selector"`
	// DryRun only counts.
	DryRun bool `json:"dryRun,omitempty"`
}

// WorkerSelector names workers.
type WorkerSelector struct {
	Labels    map[string]string `json:"labels,omitempty"`
	Queue     string            `json:"queue,omitempty"`
	Version   string            `json:"version,omitempty"`
	MachineID string            `json:"machineId,omitempty"`
}

// DrainWorkersResponse counts what a drain of many did.
type DrainWorkersResponse struct {
	// Matched workers are ONLINE or DRAINING and what the selector names. A selector that names none is 404, unless it
	// is only counted.
	Matched int `json:"matched"`
	// Draining is how many of them are DRAINING now.
	Draining int  `json:"draining"`
	DryRun   bool `json:"dryRun"`
	// WorkerIDs of those that match.
	WorkerIDs []string `json:"workerIds"`
}

// Worker is one registered worker.
type Worker struct {
	WorkerID    string            `json:"workerId"`
	Name        *string           `json:"name"`
	TenantID    string            `json:"tenantId"`
	WorkspaceID string            `json:"workspaceId"`
	Queue       string            `json:"queue"`
	MachineID   string            `json:"machineId"`
	Hostname    *string           `json:"hostname"`
	PID         *int              `json:"pid"`
	Version     *string           `json:"version"`
	Types       []string          `json:"types"`
	Runtimes    []string          `json:"runtimes"`
	Labels      map[string]string `json:"labels"`
	Status      WorkerStatus      `json:"status"`
	// StatusReason is what was given as the reason of its drain or of its end. That of a drain stays when the worker ends
	// DRAINED, DRAIN_DEADLINE or DEREGISTERED and nothing else was given; where nothing was, it is the same as endReason.
	StatusReason *string `json:"statusReason"`
	// EndReason is why it is OFFLINE: HEARTBEAT_TIMEOUT, SUPERSEDED, DEREGISTERED, DRAINED, DRAIN_DEADLINE or
	// FORCED_OFFLINE.
	EndReason *string `json:"endReason"`
	// Cordon is there while the worker takes nothing new; it is independent of the status.
	Cordon *WorkerCordon `json:"cordon"`
	// Hold is there while the worker is held offline: registrations of its identity are refused until it is resumed.
	Hold *Hold `json:"hold"`
	// Liveness is computed from the last beat whenever it is asked for, also of a worker that is OFFLINE.
	Liveness Liveness `json:"liveness"`
	// Schedulable reports whether it would be selected now.
	Schedulable bool `json:"schedulable"`
	// UnschedulableReasons are the filters of a selection that it fails: status, cordoned, stale, full.
	UnschedulableReasons []string `json:"unschedulableReasons"`
	MaxConcurrent        int      `json:"maxConcurrent"`
	// ActiveCount is what it said with its last beat.
	ActiveCount int `json:"activeCount"`
	// HeldCount is how many attempts it holds.
	HeldCount int `json:"heldCount"`
	// PlacedCount is how many queued tasks are meant for it.
	PlacedCount int `json:"placedCount"`
	// TotalCompleted is how many attempts its heartbeats reported as completed. GET /v1/tasks with its workerId lists what ended on it.
	TotalCompleted int64 `json:"totalCompleted"`
	// TotalFailed is how many attempts its heartbeats reported as failed.
	TotalFailed     int64 `json:"totalFailed"`
	RegisteredAt    Time  `json:"registeredAt"`
	LastHeartbeatAt Time  `json:"lastHeartbeatAt"`
	// LastHeartbeatAgeMs does not count outages.
	LastHeartbeatAgeMs *int64 `json:"lastHeartbeatAgeMs"`
	DeregisteredAt     Time   `json:"deregisteredAt"`
	DrainDeadline      Time   `json:"drainDeadline"`
	// UptimePct24h is the share of the last 24 h, or since it is known, in which it or an earlier registration with the same queue,
	// machine and name was alive; once OFFLINE, as it was at its end. Time after a planned end is not counted as downtime: DEREGISTERED,
	// DRAINED, DRAIN_DEADLINE, SUPERSEDED or FORCED_OFFLINE.
	UptimePct24h float64 `json:"uptimePct24h"`
	// StaleCount24h is how often it, or another registration with the same queue, machine and name, went stale in the last 24 h, up to
	// 1,000. Flapping says that this is at least the server's flapping-threshold.
	StaleCount24h       int   `json:"staleCount24h"`
	Flapping            bool  `json:"flapping"`
	HeartbeatIntervalMs int64 `json:"heartbeatIntervalMs"`
	HeartbeatTimeoutMs  int64 `json:"heartbeatTimeoutMs"`
}

// WorkerCordon is the cordon of a worker, which lasts until the worker is uncordoned or ends. Whoever registers in its place
// inherits it.
type WorkerCordon struct {
	Since  Time    `json:"since"`
	Reason *string `json:"reason"`
}

// WorkerList is one page of workers, in the order of registration.
type WorkerList struct {
	Workers       []Worker `json:"workers"`
	NextPageToken string   `json:"nextPageToken,omitempty"`
	TotalCount    int      `json:"totalCount"`
}

// Machine is a host as its workers show it.
type Machine struct {
	MachineID string `json:"machineId"`
	// Status is ONLINE while a worker of it is, else DRAINING while one is, else OFFLINE.
	Status          WorkerStatus  `json:"status"`
	Workers         MachineCounts `json:"workers"`
	LastHeartbeatAt Time          `json:"lastHeartbeatAt"`
	// UptimePct24h is the share of the last 24 h, or since it was first seen, in which it was not OFFLINE.
	UptimePct24h float64 `json:"uptimePct24h"`
	// StaleCount24h is how often in the last 24 h it went OFFLINE because its last worker had gone stale.
	StaleCount24h int  `json:"staleCount24h"`
	Flapping      bool `json:"flapping"`
	// Drain is there while the machine is drained: workers that register on it get no work until it is resumed.
	Drain *MachineDrain `json:"drain"`
	// Hold is there while the machine is held offline: registrations on it are refused until it is resumed.
	Hold *Hold `json:"hold"`
}

// Hold is what keeps a worker that an operator took offline, or the workers of such a machine, from registering again. It lasts until
// the worker or the machine is resumed, 30 days at most after the worker's end or after the machine's last worker was forgotten.
type Hold struct {
	Since  Time    `json:"since"`
	Reason *string `json:"reason"`
}

// MachineDrain is the drain of a machine.
type MachineDrain struct {
	Since Time `json:"since"`
	// Deadline is when what its workers still held at the drain is handed to others.
	Deadline Time    `json:"deadline"`
	Reason   *string `json:"reason"`
}

// ResumeMachineResponse counts what resuming a machine did.
type ResumeMachineResponse struct {
	// Matched workers of the machine were DRAINING.
	Matched int `json:"matched"`
	// Resumed is how many of them are ONLINE by this call: those that drained with the machine.
	Resumed int `json:"resumed"`
	// WorkerIDs of those.
	WorkerIDs []string `json:"workerIds"`
}

// MachineCounts counts a machine's workers.
type MachineCounts struct {
	Online   int `json:"online"`
	Draining int `json:"draining"`
	Offline  int `json:"offline"`
}

// MachineList is one page of machines, in the order of their ids.
type MachineList struct {
	Machines      []Machine `json:"machines"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	TotalCount    int       `json:"totalCount"`
}

// SelectWorkerRequest is the body of POST /v1/workers:select; all of it is optional.
type SelectWorkerRequest struct {
	Queue   string            `json:"queue,omitempty"`
	Type    string            `json:"type,omitempty"`
	Runtime string            `json:"runtime,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Strategy is leastLoaded (the default), roundRobin or random.
	Strategy string `json:"strategy,omitempty"`
}

// SelectWorkerResponse is the worker that a task would best be given to now.
type SelectWorkerResponse struct {
	Worker Worker `json:"worker"`
	// Considered workers are those of the queue.
	Considered int      `json:"considered"`
	Rejected   Rejected `json:"rejected"`
}

// Rejected counts workers at the first filter that they failed, in the order in which they are asked.
type Rejected struct {
	Runtime int `json:"runtime"`
	Type    int `json:"type"`
	Labels  int `json:"labels"`
	Status  int `json:"status"`
	// Cordoned workers take nothing new until they are uncordoned; left out where there are none.
	Cordoned int `json:"cordoned,omitempty"`
	Stale    int `json:"stale"`
	Full     int `json:"full"`
}

// SweepResponse is the answer to POST /v1/system:sweep.
type SweepResponse struct {
	Success bool         `json:"success"`
	Results SweepResults `json:"results"`
}

// SweepResults says what a sweep did.
type SweepResults struct {
	Zombies      SweptTasks   `json:"zombies"`
	StaleWorkers SweptWorkers `json:"staleWorkers"`
}

// SweptTasks counts what a sweep did with tasks.
type SweptTasks struct {
	Success bool `json:"success"`
	// ZombieCount attempts were ended for their silence.
	ZombieCount int `json:"zombieCount"`
	// TimedOutCount were ended by another timeout or a deadline.
	TimedOutCount int `json:"timedOutCount"`
	// RequeuedCount of both went back to their queues.
	RequeuedCount int `json:"requeuedCount"`
	// ReadyCount queued tasks had waited out their backoff.
	ReadyCount int `json:"readyCount"`
	// DeletedCount finished tasks were past their retention.
	DeletedCount int `json:"deletedCount"`
}

// SweptWorkers counts what a sweep did with workers.
type SweptWorkers struct {
	Success bool `json:"success"`
	// DeletedCount OFFLINE workers were past their retention.
	DeletedCount int `json:"deletedCount"`
	// MarkedOfflineCount workers had been silent for their timeout.
	MarkedOfflineCount int `json:"markedOfflineCount"`
	// DrainedCount workers had finished what they held.
	DrainedCount int `json:"drainedCount"`
	// RecoveredCount attempts were taken from workers that have ended.
	RecoveredCount int `json:"recoveredCount"`
	// AffectedMachineIDs are the machines, in the token's scope, of those that were marked OFFLINE.
	AffectedMachineIDs []string `json:"affectedMachineIds"`
}
