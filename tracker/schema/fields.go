package schema

// Names of the fields of records, as scripts and Go write and read them; TestFieldsMatchLua compares the two. What is empty
// or default is not there. Times are wall ms where nothing else is said.

// Fields of task:<scope>/<task>, a task's record.
const (
	TaskState           = "s"  // state: Q, D, R, S, F or C, the first letter of its name
	TaskAttempt         = "a"  // number of the current attempt
	TaskFence           = "f"  // fence of that attempt
	TaskFirstFence      = "o"  // fence of the creation
	TaskRun             = "u"  // run
	TaskKey             = "k"  // key
	TaskAsset           = "as" // asset
	TaskTrace           = "tp" // traceparent of its creation
	TaskQueue           = "q"  // queue
	TaskType            = "y"  // type
	TaskRuntime         = "rn" // runtime
	TaskWorker          = "w"  // worker of the current attempt
	TaskClaim           = "ci" // claim by which that worker has it, hashed
	TaskPin             = "pn" // worker that it is pinned to
	TaskPlacement       = "pl" // strategy by which it is placed
	TaskAskedLabels     = "wl" // hash of the worker labels asked for
	TaskTimeout         = "t"  // heartbeat timeout, ms
	TaskInterval        = "i"  // heartbeat interval, ms
	TaskCancelGrace     = "g"  // cancel grace, ms
	TaskStartTimeout    = "so" // start timeout, ms
	TaskRunTimeout      = "rt" // run timeout, ms
	TaskAskedTokenLife  = "lt" // token life that was asked for, s
	TaskTokenLife       = "l"  // token life of the current attempt, s
	TaskNoRenewal       = "nr" // 1: its tokens are not renewed
	TaskRetry           = "p"  // retry policy, maxAttempts:maxLosses:initialMs:multiplier:maxMs
	TaskFailures        = "nf" // failures
	TaskLosses          = "nl" // losses
	TaskCreated         = "c"  // when it was created
	TaskDispatched      = "d"  // when the current attempt was dispatched
	TaskBegun           = "b"  // when it was begun
	TaskEnded           = "e"  // when the task ended
	TaskDeadline        = "x"  // deadline
	TaskNotBefore       = "nb" // when it may begin at the earliest
	TaskNextAttempt     = "n"  // when its next attempt may begin
	TaskCancelRequested = "cr" // when a cancel was requested
	TaskReadySince      = "rd" // since when it has been ready to be claimed
	TaskReason          = "r"  // why it failed or was put back
	TaskSpared          = "bh" // score that the mass expiry brake gave the attempt, shard time
	TaskSparedBeat      = "bb" // its last beat before that, shard time
	TaskSchedule        = "sc" // schedule that it is a fire of
	TaskSize            = "z"  // class and bytes of its documents and history
)

// Fields of doc:<scope>/<task>, what may be long of a task.
const (
	DocPayload      = "payload"
	DocResources    = "resources"
	DocLabels       = "labels"
	DocWorkerLabels = "workerLabels" // labels asked of its worker
	DocOutput       = "output"       // of the attempt that succeeded
	DocMetrics      = "metrics"
	DocError        = "error"        // of the attempt that failed last
	DocPhase        = "phase"        // in which it was cancelled
	DocPartial      = "partial"      // progress then
	DocCancelReason = "cancelReason" // as JSON string
)

// Fields of worker:<scope>/<worker>, a worker's record.
const (
	WorkerStatus        = "s"  // status: N online, D draining, F offline
	WorkerQueue         = "q"  // queue
	WorkerTypes         = "y"  // types, comma-separated
	WorkerRuntimes      = "rn" // runtimes, comma-separated
	WorkerName          = "n"  // name
	WorkerMachine       = "m"  // machine
	WorkerHostname      = "h"  // hostname
	WorkerPID           = "p"  // process id
	WorkerVersion       = "v"  // version
	WorkerMaxConcurrent = "mc" // how many tasks it takes at once
	WorkerLabels        = "l"  // labels as JSON
	WorkerProbeURL      = "u"  // probe URL
	WorkerIdentity      = "id" // hash of its identity
	WorkerLineage       = "ln" // hash of its lineage
	WorkerInterval      = "i"  // heartbeat interval, ms
	WorkerTimeout       = "t"  // timeout, ms
	WorkerLastBeat      = "bl" // last beat, shard time
	WorkerLastBeatWall  = "lb" // the same, wall ms
	WorkerLateSince     = "la" // since when it is late
	WorkerProbes        = "pb" // probes answered since its last beat
	WorkerLastProbe     = "px" // the last of these, shard time
	WorkerActive        = "a"  // how many tasks it says that it has
	WorkerElsewhere     = "ae" // of these those that it did not claim
	WorkerSeq           = "sq" // last sequence number
	WorkerInventories   = "bn" // inventories heard
	WorkerCompleted     = "tc" // tasks completed in all
	WorkerFailed        = "tf" // tasks failed in all
	WorkerRegistered    = "c"  // when it registered
	WorkerEnded         = "e"  // since when it is offline
	WorkerReason        = "r"  // why it is offline
	WorkerGivenReason   = "gr" // reason that was given for that
	WorkerDrainReason   = "dr" // reason that was given for its drain
	WorkerDrainBegan    = "ds" // when its drain began
	WorkerDrainDeadline = "dd" // deadline of its drain
	WorkerDrainTold     = "dt" // 1: it knows of its drain
	WorkerWithMachine   = "md" // 1: it drains with its machine, w: it registered on a drained one and waits, draining
	WorkerLosses        = "ll" // 1: its lost tasks count as losses
	WorkerRecovered     = "rt" // attempts recovered from it
	WorkerRecoverFailed = "rf" // how many of these failed for good
	WorkerExhausted     = "rx" // how many of those had used up their retries
	WorkerSelected      = "ls" // when it was last selected
	WorkerHeld          = "hb" // how many attempts it holds at most
	WorkerReservations  = "hg" // reservations that have ended
	WorkerSuperseded    = "sp" // the worker that it superseded
	WorkerSupersessions = "sx" // when its identity was last taken over, newest first, comma-separated
	WorkerConflictTold  = "st" // when that was told
	WorkerSpared        = "br" // when the mass expiry brake spared it, shard time
	WorkerSilence       = "si" // how long it had been silent when it ended, ms
	WorkerLag           = "lg" // how long its end had been due, ms
	WorkerCordoned      = "co" // since when it is cordoned
	WorkerCordonReason  = "cw" // reason that was given for that, as JSON string
	WorkerHeldOffline   = "ho" // 1: it is held offline while its lineage has a hold
)

// Fields of schedule:<scope>/<id>, a schedule's record.
const (
	ScheduleCron       = "c"  // cron expression
	ScheduleOverlap    = "o"  // 1: a fire is skipped while the task of the one before runs
	ScheduleMaxCatchup = "m"  // how many missed fires are caught up
	ScheduleVersion    = "v"  // version of what it says and of whether it is paused
	ScheduleQueue      = "q"  // queue of its tasks
	ScheduleType       = "y"  // their type
	ScheduleSize       = "sz" // bytes of its task
	ScheduleNonce      = "nn" // nonce of the creation
	ScheduleCreated    = "cr" // when it was created
	ScheduleChanged    = "up" // when it was changed
	SchedulePaused     = "p"  // since when it is paused
	ScheduleResumed    = "rs" // since when it has not been paused
	ScheduleLast       = "l"  // the last fire that was dealt with
	ScheduleEnded      = "e"  // 1: no fire is to come any more
	ScheduleFires      = "nf" // fires in all
	ScheduleSkipped    = "sk" // skipped fires in all
	ScheduleUntold     = "su" // missed fires of which no event tells yet
	ScheduleLastTask   = "tk" // task of the last fire
	ScheduleDecided    = "dc" // fire that is to get a task
	ScheduleBackoff    = "bp" // for how long its fires are let be, since the last was refused for now, ms
	ScheduleRepeats    = "rp" // fires that wait though they have their tasks, wall ms, each with a comma behind it
	ScheduleNamed      = "ns" // since when no request can have named the tasks of its fires; 1: since its creation
)

// Fields of scheduletask:<scope>/<id>, what a schedule's tasks are made from.
const (
	ScheduleDocTask      = "task"
	ScheduleDocPayload   = "payload"
	ScheduleDocResources = "resources"
)
