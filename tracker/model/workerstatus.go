package model

// WorkerStatus is the status of a worker.
type WorkerStatus string

const (
	Online   WorkerStatus = "ONLINE"   // claims tasks
	Draining WorkerStatus = "DRAINING" // finishes its attempts and claims nothing
	Offline  WorkerStatus = "OFFLINE"  // has ended for good; a process that returns registers again
)

// WorkerStatuses lists all statuses in the order of a worker's life.
var WorkerStatuses = []WorkerStatus{Online, Draining, Offline}

var statusLetters = map[WorkerStatus]string{Online: "N", Draining: "D", Offline: "F"}

// StatusOf returns the status with a stored letter, "" if there is none.
func StatusOf(letter string) WorkerStatus {
	for s, l := range statusLetters {
		if l == letter {
			return s
		}
	}
	return ""
}

// StatusCode returns statuses as they are stored, one letter each.
func StatusCode(statuses ...WorkerStatus) string {
	letters := ""
	for _, s := range statuses {
		letters += statusLetters[s]
	}
	return letters
}

// WorkerReason is why a worker went OFFLINE.
type WorkerReason string

const (
	WorkerStale         WorkerReason = "HEARTBEAT_TIMEOUT" // silent for its timeout
	WorkerSuperseded    WorkerReason = "SUPERSEDED"        // the same process, or another with its PID, registered again
	WorkerDeregistered  WorkerReason = "DEREGISTERED"      // deregistered itself
	WorkerDrained       WorkerReason = "DRAINED"           // finished its attempts
	WorkerDrainDeadline WorkerReason = "DRAIN_DEADLINE"    // did not finish in time
	WorkerForced        WorkerReason = "FORCED_OFFLINE"    // an operator ended it

	// NotInInventory does not end a worker: it is the reason of attempts that are taken from it because two consecutive inventories miss
	// them.
	NotInInventory WorkerReason = "NOT_IN_INVENTORY"
)
