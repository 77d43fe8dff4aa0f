package schema

// These are the names of the fields of records in scripts and Go; TestFieldsMatchLua compares them. Empty and default values are not
// stored. Times are wall ms unless a comment states otherwise.

// These are the fields of task:<scope>/<task>, a task's record.
const (
	TaskState              = "s"  // state: Q, D, R, S, F or C, the first letter of its name
	TaskAttempt            = "a"  // number of the current attempt
	TaskFence              = "f"  // fence of that attempt
	TaskFirstFence         = "o"  // fence of the creation
	TaskRun                = "u"  // run
	TaskKey                = "k"  // key
	TaskAsset              = "as" // asset
	TaskTrace              = "tp" // traceparent of its creation
	TaskQueue              = "q"  // queue
	TaskType               = "y"  // type
	TaskRuntime            = "rn" // runtime
	TaskWorker             = "w"  // worker of the current attempt
	TaskClaim              = "ci" // hash of the claim with which that worker got it
	TaskPin                = "pn" // worker to which it is pinned
	TaskPlacement          = "pl" // strategy by which it is placed
	TaskRequiredLabels     = "wl" // hash of the worker labels that it requires
	TaskTimeout            = "t"  // heartbeat timeout, ms
	TaskInterval           = "i"  // heartbeat interval, ms
	TaskCancelGrace        = "g"  // cancel grace, ms
	TaskStartTimeout       = "so" // start timeout, ms
	TaskRunTimeout         = "rt" // run timeout, ms
	TaskRequestedTokenLife = "lt" // requested token life, s
	TaskTokenLife          = "l"  // token life of the current attempt, s
	TaskNoRenewal          = "nr" // 1: its tokens are not renewed
	TaskRetry              = "p"  // retry policy, maxAttempts:maxLosses:initialMs:multiplier:maxMs
	TaskFailures           = "nf" // failures
	TaskLosses             = "nl" // losses
	TaskCreated            = "c"  // when it was created
	TaskDispatched         = "d"  // when the current attempt was dispatched
	TaskBegun              = "b"  // when that was started
	TaskEnded              = "e"  // when the task ended
	TaskDeadline           = "x"  // deadline
	TaskRunAt              = "nb" // earliest start
	TaskScheduled          = "sl" // 1: it is listed as SCHEDULED
	TaskNextAttempt        = "n"  // earliest start of its next attempt
	TaskCancelRequested    = "cr" // when a cancel was requested
	TaskReadySince         = "rd" // since when it can be claimed
	TaskReason             = "r"  // why it failed or was requeued
	TaskBrakeScore         = "bh" // score that the mass-expiry brake gave the attempt, shard time
	TaskBrakeLastBeat      = "bb" // its last beat before that, shard time
	TaskSchedule           = "sc" // schedule that created it
	TaskSize               = "z"  // class and bytes of its documents and history
	TaskAwaited            = "aw" // 1: a request waits, or has waited, for its end
)

// These are the fields of doc:<scope>/<task>, the parts of a task that may be long.
const (
	DocPayload      = "payload"
	DocResources    = "resources"
	DocLabels       = "labels"
	DocWorkerLabels = "workerLabels" // labels required of its worker
	DocOutput       = "output"       // of the attempt that succeeded
	DocMetrics      = "metrics"
	DocError        = "error"        // of the last attempt that failed
	DocPhase        = "phase"        // phase in which it was cancelled
	DocPartial      = "partial"      // progress then
	DocCancelReason = "cancelReason" // as a JSON string
	DocDetails      = "details"      // of the last heartbeat that had any, of any attempt
)

// These are the fields of worker:<scope>/<worker>, a worker's record.
const (
	WorkerStatus           = "s"  // status: N online, D draining, F offline
	WorkerQueue            = "q"  // queue
	WorkerTypes            = "y"  // types, comma-separated
	WorkerRuntimes         = "rn" // runtimes, comma-separated
	WorkerName             = "n"  // name
	WorkerMachine          = "m"  // machine
	WorkerHostname         = "h"  // hostname
	WorkerPID              = "p"  // process id
	WorkerVersion          = "v"  // version
	WorkerMaxConcurrent    = "mc" // how many tasks it runs concurrently
	WorkerLabels           = "l"  // labels as JSON
	WorkerProbeURL         = "u"  // probe URL
	WorkerIdentity         = "id" // hash of its identity
	WorkerLineage          = "ln" // hash of its lineage
	WorkerInterval         = "i"  // heartbeat interval, ms
	WorkerTimeout          = "t"  // timeout, ms
	WorkerLastBeat         = "bl" // last beat, shard time
	WorkerLastBeatWall     = "lb" // the same, wall ms
	WorkerLateSince        = "la" // since when it is late
	WorkerProbes           = "pb" // probes that succeeded since its last beat
	WorkerLastProbe        = "px" // the last of these, shard time
	WorkerActive           = "a"  // how many tasks it reports
	WorkerElsewhere        = "ae" // of these, those that it did not claim
	WorkerSeq              = "sq" // last sequence number
	WorkerInventories      = "bn" // inventories received
	WorkerCompleted        = "tc" // tasks completed in total
	WorkerFailed           = "tf" // tasks failed in total
	WorkerRegistered       = "c"  // when it registered
	WorkerEnded            = "e"  // since when it is offline
	WorkerReason           = "r"  // why it is offline
	WorkerGivenReason      = "gr" // reason given for that
	WorkerDrainReason      = "dr" // reason given for its drain
	WorkerDrainBegan       = "ds" // when its drain began
	WorkerDrainDeadline    = "dd" // deadline of its drain
	WorkerDrainNotified    = "dt" // 1: it was notified of its drain
	WorkerWithMachine      = "md" // 1: it drains with its machine, w: it registered on a drained one and waits, draining
	WorkerLosses           = "ll" // 1: its lost tasks count as losses
	WorkerRecovered        = "rt" // attempts recovered from it
	WorkerRecoverFailed    = "rf" // how many of these failed for good
	WorkerExhausted        = "rx" // how many of those had exhausted their retries
	WorkerSelected         = "ls" // when it was last selected
	WorkerHeld             = "hb" // how many attempts it holds at most
	WorkerReservations     = "hg" // reservations that have ended
	WorkerSuperseded       = "sp" // the worker that it superseded
	WorkerSupersessions    = "sx" // when its identity was taken over, newest first, comma-separated
	WorkerConflictReported = "st" // when that was reported
	WorkerBrakeHeld        = "br" // when the mass-expiry brake held it, shard time
	WorkerSilence          = "si" // how long it had been silent when it ended, ms
	WorkerLag              = "lg" // how long its end was overdue, ms
	WorkerCordoned         = "co" // since when it is cordoned
	WorkerCordonReason     = "cw" // reason given for that, as a JSON string
	WorkerHeldOffline      = "ho" // 1: it is held offline while its lineage has a hold
)

// These are the fields of schedule:<scope>/<id>, a schedule's record.
const (
	ScheduleCron       = "c"  // cron expression
	ScheduleOverlap    = "o"  // 1: a fire is skipped while the previous task runs
	ScheduleMaxCatchup = "m"  // how many missed fires are caught up
	ScheduleVersion    = "v"  // version of its definition and of whether it is paused
	ScheduleQueue      = "q"  // queue of its tasks
	ScheduleType       = "y"  // their type
	ScheduleSize       = "sz" // bytes of its task
	ScheduleNonce      = "nn" // nonce of the creation
	ScheduleCreated    = "cr" // when it was created
	ScheduleChanged    = "up" // when it was changed
	SchedulePaused     = "p"  // since when it is paused
	ScheduleResumed    = "rs" // since when it has not been paused
	ScheduleLast       = "l"  // the last fire that was handled
	ScheduleEnded      = "e"  // 1: no fire follows
	ScheduleFires      = "nf" // number of fires
	ScheduleSkipped    = "sk" // number of skipped fires
	ScheduleUntold     = "su" // missed fires without an event so far
	ScheduleLastTask   = "tk" // task of the last fire
	ScheduleDecided    = "dc" // fire whose task is being created
	ScheduleBackoff    = "bp" // pause before its fires are tried again after a temporary refusal, ms
	ScheduleRepeats    = "rp" // waiting fires that a backfill repeats, wall ms, each followed by a comma
	ScheduleNamed      = "ns" // since when no request can have used the names of its fires' tasks; 1: since its creation
)

// These are the fields of scheduletask:<scope>/<id>, from which a schedule's tasks are created.
const (
	ScheduleDocTask      = "task"
	ScheduleDocPayload   = "payload"
	ScheduleDocResources = "resources"
)
