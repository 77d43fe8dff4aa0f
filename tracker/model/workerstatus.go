package model

// WorkerStatus is what a worker may do.
type WorkerStatus string

const (
	Online   WorkerStatus = "ONLINE"   // claims tasks
	Draining WorkerStatus = "DRAINING" // finishes what it holds and claims nothing
	Offline  WorkerStatus = "OFFLINE"  // is gone for good; a process that comes back registers anew
)

// WorkerStatuses lists every status in the order of a worker's life.
var WorkerStatuses = []WorkerStatus{Online, Draining, Offline}

var statusLetters = map[WorkerStatus]string{Online: "N", Draining: "D", Offline: "F"}

// StatusOf reads a status as it is stored: by its letter; "" when there is none such.
func StatusOf(letter string) WorkerStatus {
	for s, l := range statusLetters {
		if l == letter {
			return s
		}
	}
	return ""
}

// StatusCode writes statuses as they are stored, one letter each.
func StatusCode(statuses ...WorkerStatus) string {
	letters := ""
	for _, s := range statuses {
		letters += statusLetters[s]
	}
	return letters
}

// WorkerReason says why a worker went OFFLINE.
type WorkerReason string

const (
	WorkerStale         WorkerReason = "HEARTBEAT_TIMEOUT" // silent for its timeout
	WorkerSuperseded    WorkerReason = "SUPERSEDED"        // the same process, or another with its pid, registered anew
	WorkerDeregistered  WorkerReason = "DEREGISTERED"      // said goodbye
	WorkerDrained       WorkerReason = "DRAINED"           // finished what it held
	WorkerDrainDeadline WorkerReason = "DRAIN_DEADLINE"    // had not finished in time
	WorkerForced        WorkerReason = "FORCED_OFFLINE"    // an operator ended it

	// NotInInventory is no end of a worker: it lives, and what two of its inventories running do not list is taken from it.
	NotInInventory WorkerReason = "NOT_IN_INVENTORY"
)
