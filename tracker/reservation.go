package tracker

// Grant is what a worker may claim now, and what it can run.
type Grant struct {
	Max       int // tasks; 0: it is at its maxConcurrent
	Queue     string
	MachineID string
	Types     []string
	Runtimes  []string
	Labels    map[string]string
}

// Codes of refusals about workers.
const (
	WorkerOffline  Code = "worker_offline"  // it is gone for good; Message says why
	WorkerDraining Code = "worker_draining" // it gets no new tasks
)
