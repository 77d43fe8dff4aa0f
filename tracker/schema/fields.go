package schema

// Names of the fields of records, as scripts and Go write and read them; TestFieldsMatchLua compares the two. What is empty
// or default is not there. Times are wall ms where nothing else is said.

// Fields of task:<scope>/<task>, a task's record.
const (
	fieldTaskState           = "s"  // state: Q, D, R, S, F or C, the first letter of its name
	fieldTaskAttempt         = "a"  // number of the current attempt
	fieldTaskFence           = "f"  // fence of that attempt
	fieldTaskFirstFence      = "o"  // fence of the creation
	fieldTaskRun             = "u"  // run
	fieldTaskKey             = "k"  // key
	fieldTaskAsset           = "as" // asset
	fieldTaskQueue           = "q"  // queue
	fieldTaskType            = "y"  // type
	fieldTaskRuntime         = "rn" // runtime
	fieldTaskWorker          = "w"  // worker of the current attempt
	fieldTaskClaim           = "ci" // claim by which that worker has it, hashed
	fieldTaskPin             = "pn" // worker that it is pinned to
	fieldTaskPlacement       = "pl" // strategy by which it is placed
	fieldTaskAskedLabels     = "wl" // hash of the worker labels asked for
	fieldTaskTimeout         = "t"  // heartbeat timeout, ms
	fieldTaskInterval        = "i"  // heartbeat interval, ms
	fieldTaskCancelGrace     = "g"  // cancel grace, ms
	fieldTaskStartTimeout    = "so" // start timeout, ms
	fieldTaskRunTimeout      = "rt" // run timeout, ms
	fieldTaskAskedTokenLife  = "lt" // token life that was asked for, s
	fieldTaskTokenLife       = "l"  // token life of the current attempt, s
	fieldTaskNoRenewal       = "nr" // 1: its tokens are not renewed
	fieldTaskRetry           = "p"  // retry policy, maxAttempts:maxLosses:initialMs:multiplier:maxMs
	fieldTaskFailures        = "nf" // failures
	fieldTaskLosses          = "nl" // losses
	fieldTaskCreated         = "c"  // when it was created
	fieldTaskDispatched      = "d"  // when the current attempt was dispatched
	fieldTaskBegun           = "b"  // when it was begun
	fieldTaskEnded           = "e"  // when the task ended
	fieldTaskDeadline        = "x"  // deadline
	fieldTaskNotBefore       = "nb" // when it may begin at the earliest
	fieldTaskNextAttempt     = "n"  // when its next attempt may begin
	fieldTaskCancelRequested = "cr" // when a cancel was requested
	fieldTaskReadySince      = "rd" // since when it has been ready to be claimed
	fieldTaskReason          = "r"  // why it failed or was put back
	fieldTaskSpared          = "bh" // score that the mass expiry brake gave the attempt, shard time
	fieldTaskSparedBeat      = "bb" // its last beat before that, shard time
	fieldTaskSize            = "z"  // class and bytes of its documents and history
)

// Fields of doc:<scope>/<task>, what may be long of a task.
const (
	fieldDocPayload      = "payload"
	fieldDocResources    = "resources"
	fieldDocLabels       = "labels"
	fieldDocWorkerLabels = "workerLabels" // labels asked of its worker
	fieldDocOutput       = "output"       // of the attempt that succeeded
	fieldDocMetrics      = "metrics"
	fieldDocError        = "error"        // of the attempt that failed last
	fieldDocPhase        = "phase"        // in which it was cancelled
	fieldDocPartial      = "partial"      // progress then
	fieldDocCancelReason = "cancelReason" // as JSON string
)

// Fields of worker:<scope>/<worker>, a worker's record.
const (
	fieldWorkerStatus        = "s"  // status: N online, D draining, F offline
	fieldWorkerQueue         = "q"  // queue
	fieldWorkerTypes         = "y"  // types, comma-separated
	fieldWorkerRuntimes      = "rn" // runtimes, comma-separated
	fieldWorkerName          = "n"  // name
	fieldWorkerMachine       = "m"  // machine
	fieldWorkerHostname      = "h"  // hostname
	fieldWorkerPID           = "p"  // process id
	fieldWorkerVersion       = "v"  // version
	fieldWorkerMaxConcurrent = "mc" // how many tasks it takes at once
	fieldWorkerLabels        = "l"  // labels as JSON
	fieldWorkerProbeURL      = "u"  // probe URL
	fieldWorkerIdentity      = "id" // hash of its identity
	fieldWorkerLineage       = "ln" // hash of its lineage
	fieldWorkerInterval      = "i"  // heartbeat interval, ms
	fieldWorkerTimeout       = "t"  // timeout, ms
	fieldWorkerLastBeat      = "bl" // last beat, shard time
	fieldWorkerLastBeatWall  = "lb" // the same, wall ms
	fieldWorkerLateSince     = "la" // since when it is late
	fieldWorkerProbes        = "pb" // probes answered since its last beat
	fieldWorkerLastProbe     = "px" // the last of these, shard time
	fieldWorkerActive        = "a"  // how many tasks it says that it has
	fieldWorkerElsewhere     = "ae" // of these those that it did not claim
	fieldWorkerSeq           = "sq" // last sequence number
	fieldWorkerInventories   = "bn" // inventories heard
	fieldWorkerCompleted     = "tc" // tasks completed in all
	fieldWorkerFailed        = "tf" // tasks failed in all
	fieldWorkerRegistered    = "c"  // when it registered
	fieldWorkerEnded         = "e"  // since when it is offline
	fieldWorkerReason        = "r"  // why it is offline
	fieldWorkerGivenReason   = "gr" // reason that was given for that
	fieldWorkerDrainReason   = "dr" // reason that was given for its drain
	fieldWorkerDrainBegan    = "ds" // when its drain began
	fieldWorkerDrainDeadline = "dd" // deadline of its drain
	fieldWorkerDrainTold     = "dt" // 1: it knows of its drain
	fieldWorkerWithMachine   = "md" // 1: it drains with its machine, w: it registered on a drained one and waits, draining
	fieldWorkerLosses        = "ll" // 1: its lost tasks count as losses
	fieldWorkerRecovered     = "rt" // attempts recovered from it
	fieldWorkerSelected      = "ls" // when it was last selected
	fieldWorkerHeld          = "hb" // how many attempts it holds at most
	fieldWorkerReservations  = "hg" // reservations that have ended
	fieldWorkerSuperseded    = "sp" // the worker that it superseded
	fieldWorkerSupersessions = "sx" // when its identity was last taken over, newest first, comma-separated
	fieldWorkerConflictTold  = "st" // when that was told
	fieldWorkerSpared        = "br" // when the mass expiry brake spared it, shard time
	fieldWorkerSilence       = "si" // how long it had been silent when it ended, ms
	fieldWorkerLag           = "lg" // how long its end had been due, ms
)
