package workers

import (
	"encoding/json"
	"fmt"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are those of lua/workers. One function here or in scripts_*.go runs each of them: it names the arguments as the script's
// header does and knows their positions, and the function that reads the reply follows it.
type scripts struct {
	store *store.Store // for the keys of its shards
	opts  Options

	adopt        *lua.Script
	allLoads     *lua.Script
	beat         *lua.Script
	candidates   *lua.Script
	cordon       *lua.Script
	dayCounts    *lua.Script
	holds        *lua.Script
	identity     *lua.Script
	list         *lua.Script
	lives        *lua.Script
	loads        *lua.Script
	machineDrain *lua.Script
	machineRead  *lua.Script
	names        *lua.Script
	read         *lua.Script
	register     *lua.Script
	registration *lua.Script
	reserve      *lua.Script
	selected     *lua.Script
	status       *lua.Script
}

func newScripts(s *store.Store, o Options) *scripts {
	set := s.Scripts
	return &scripts{
		store: s, opts: o,

		adopt:        set.Get("worker_adopt"),
		allLoads:     set.Get("all_loads"),
		beat:         set.Get("worker_beat"),
		candidates:   set.Get("worker_candidates"),
		cordon:       set.Get("worker_cordon"),
		dayCounts:    set.Get("day_counts"),
		holds:        set.Get("worker_holds"),
		identity:     set.Get("worker_identity"),
		list:         set.Get("list"),
		lives:        set.Get("lives"),
		loads:        set.Get("loads"),
		machineDrain: set.Get("machine_drain"),
		machineRead:  set.Get("machine_read"),
		names:        set.Get("worker_names"),
		read:         set.Get("worker_read"),
		register:     set.Get("worker_register"),
		registration: set.Get("registration"),
		reserve:      set.Get("worker_reserve"),
		selected:     set.Get("worker_selected"),
		status:       set.Get("worker_status"),
	}
}

// Keys returns the keys of a resolved worker, as scripts about workers declare them.
func (s *scripts) Keys(r *schema.WorkerRef) []string {
	k := s.store.Keys[r.Shard]
	return k.OfWorker(append(make([]string, 0, len(k.OfWorkers)+10), k.OfWorkers...), r)
}

// keysWithHold returns Keys and the key of the hold of its lineage.
func (s *scripts) keysWithHold(r *schema.WorkerRef) []string {
	return append(s.Keys(r), s.store.Keys[r.Shard].Hold(r.Scope, r.Lineage))
}

// recordKeys returns the keys of workers' records, which are in one shard, after the given ones.
func (s *scripts) recordKeys(refs []*schema.WorkerRef, first ...string) []string {
	keys := append(make([]string, 0, len(first)+len(refs)), first...)
	for _, r := range refs {
		keys = append(keys, s.store.Keys[r.Shard].Worker(schema.TaskName(r.Scope, r.ID)))
	}
	return keys
}

// machineKeys returns the keys that scripts about a machine declare.
func machineKeys(k *schema.ShardKeys, scope model.Scope, id string) []string {
	name := schema.TaskName(scope, id)
	return []string{k.Machine(name), k.MachineWorkers(name), k.MachinePeriods(name), k.Stales(scope, "m:"+id)}
}

// numberOrEmpty encodes optional numbers for scripts.
func numberOrEmpty[N int | int64](n *N) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// jsonOrNull returns a text as JSON for an event, null if it is empty.
func jsonOrNull(text string) string {
	if text == "" {
		return "null"
	}
	b, _ := json.Marshal(text) // cannot fail for a string
	return string(b)
}

// pairs returns the names and values of a record as arguments.
func pairs(record []string) []any {
	args := make([]any, len(record))
	for i, text := range record {
		args[i] = text
	}
	return args
}
