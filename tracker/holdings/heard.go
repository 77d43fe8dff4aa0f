package holdings

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerHeard is the answer to a worker's beat.
type WorkerHeard struct {
	At            time.Time
	ShouldDrain   bool
	Ended         bool      // its drain is over, and it is told so as one that drains: no beat of its is heard any more
	DrainDeadline time.Time // zero: none
	Interval      time.Duration
	Timeout       time.Duration
	Cancels       []TaskNotice // attempts to stop gracefully
	Lost          []TaskNotice // attempts that are not its own any more

	Scope     model.Scope
	Worker    string
	Inventory string           // number of its inventory; "": none, or one that is older than another
	entries   []string         // word that is repeated until Notified
	cancelled []*model.Attempt // those of Cancels
	told      map[toldOf]bool
}

// toldOf is one thing that a worker is told about an attempt, once.
type toldOf struct {
	attempt OwnedAttempt
	lost    bool // else it is to be cancelled
}
