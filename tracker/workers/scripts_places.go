package workers

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Reservation names places of a worker that are kept for a claim or for tasks that are to be placed there.
type Reservation struct {
	Worker *schema.WorkerRef
	Name   string
}

// ReserveArgs are the arguments of worker_reserve.lua for a reservation.
type ReserveArgs struct {
	Want        int           // places
	Life        time.Duration // after which the reservation expires
	Held        int           // how many tasks the worker holds, as counted
	Counted     string        // Ended of the last reply before the count of Held began; empty: none was counted
	AsHeartbeat bool          // this counts as the worker's heartbeat
}

// ReserveCall reserves places of a worker (worker_reserve.lua).
func (s *scripts) ReserveCall(r Reservation, a ReserveArgs) *store.Call {
	var held any = ""
	if a.Counted != "" {
		held = a.Held
	}
	beatOf := ""
	if a.AsHeartbeat {
		beatOf = schema.TaskName(r.Worker.Scope, r.Worker.ID)
	}
	return s.reserveCall(r, a.Want, a.Life, held, a.Counted, beatOf)
}

// EndReservationCall ends a reservation; `taken` is how many of its places now hold tasks (worker_reserve.lua).
func (s *scripts) EndReservationCall(r Reservation, taken int) *store.Call {
	return s.reserveCall(r, -1, 0, taken, "", "")
}

func (s *scripts) reserveCall(r Reservation, want int, life time.Duration, held any, counted, beatOf string) *store.Call {
	k, name := s.store.Keys[r.Worker.Shard], schema.TaskName(r.Worker.Scope, r.Worker.ID)
	return store.NewCall(r.Worker.Shard, s.reserve,
		[]string{k.Worker(name), k.Reserved(name), k.Clock, k.WorkerBeats, k.Workers, k.Events},
		r.Name, want, model.Millis(life), held, counted, beatOf)
}

// Reserved is the reply of worker_reserve.lua: the reservation and what the worker can run.
type Reserved struct {
	Code      int64
	At        time.Time // by Redis's clock
	Places    int       // reserved; 0: none is free
	Queue     string
	MachineID string
	Types     []string
	Runtimes  []string
	Labels    map[string]string
	Reason    model.WorkerReason // of a worker that is OFFLINE
	Ended     string             // a counter that rises whenever a reservation ends
	Lost      bool               // the worker was silent for its timeout
	Cordoned  bool               // it takes no new tasks
}

// ReadReserved reads the reply to a ReserveCall.
func ReadReserved(re store.Reply) Reserved {
	r := Reserved{
		Code: re.Int(0), At: re.Time(1), Places: int(re.Int(2)), Queue: re.Str(4), MachineID: re.Str(5),
		Types: splitNames(re.Str(6)), Runtimes: splitNames(re.Str(7)),
		Reason: model.WorkerReason(re.Str(9)), Ended: re.Str(10), Lost: re.Int(11) == 1, Cordoned: re.Int(12) == 1,
	}
	schema.Unmarshal(re.Str(8), &r.Labels)
	return r
}

// selectedCall records that a worker was selected and reserves a place there (worker_selected.lua); with a life of 0 it reserves
// nothing.
func (s *scripts) selectedCall(r Reservation, life time.Duration) *store.Call {
	k, name := s.store.Keys[r.Worker.Shard], schema.TaskName(r.Worker.Scope, r.Worker.ID)
	return store.NewCall(r.Worker.Shard, s.selected, []string{k.Worker(name), k.Reserved(name)}, r.Name, model.Millis(life))
}

type selectedReply struct {
	online bool      // and not cordoned; else nothing was recorded
	others int       // places that others have reserved
	before time.Time // when it was last selected; zero: never
}

func readSelected(re store.Reply) selectedReply {
	return selectedReply{online: re.Int(0) == schema.CodeOK, others: int(re.Int(1)), before: schema.ParseMillis(re.Str(2))}
}
