package workers

import (
	"context"
	"fmt"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A worker's token carries its registration, so that a worker whose record the store has lost is taken up again by its
// next request, as an attempt is. What was not part of the registration is lost: its totals, and a drain.

// maxCarried bounds what a token carries of a registration, in bytes; a token comes with every beat.
const maxCarried = 1024

// essential are the fields without which there is no worker. The others are carried as far as they fit, in their order.
var (
	essential = []string{"q", "m", "ln", "mc", "i", "t", "id", "c"}
	optional  = []string{"y", "rn", "l", "p", "h", "n", "v", "u"}
)

// carried gives what the token is to carry of a record, as name and value.
func carried(record []any) []string {
	value := map[string]string{}
	for i := 0; i+1 < len(record); i += 2 {
		value[fmt.Sprint(record[i])] = fmt.Sprint(record[i+1])
	}
	var out []string
	size := 0
	add := func(name string, limit int) {
		if v := value[name]; v != "" && size+len(v) <= limit {
			out, size = append(out, name, v), size+len(v)
		}
	}
	for _, name := range essential {
		add(name, model.MaxIDBytes*len(essential)) // all of them
	}
	for _, name := range optional {
		add(name, maxCarried)
	}
	return out
}

// AdoptWorker takes up a worker that the store does not know, from the record that its verified token carries. One that
// the store knows is left alone.
func (t *Service) AdoptWorker(ctx context.Context, scope model.Scope, id string, record []string) error {
	ctx = t.store.Within(ctx, 0)
	r, ok := t.store.WorkerRef(scope, id)
	if !ok {
		return NoWorker("adopt")
	}
	args := []any{scope.String(), id, t.store.Shards(), model.Millis(t.opts.OfflineRetention)}
	for i := 0; i+1 < len(record); i += 2 {
		switch record[i] {
		case "m":
			r.Machine = record[i+1]
		case "ln":
			r.Lineage = record[i+1]
		case "id":
			r.Identity = record[i+1]
		}
		args = append(args, record[i], record[i+1])
	}
	if r.Machine == "" || t.store.MachineShard(scope, r.Machine) != r.Shard {
		return NoWorker("adopt") // made for a deployment with other shards
	}
	if r.Identity == "" {
		r.Identity = id
	}
	_, err := t.store.Do(ctx, "adopt", store.NewCall(r.Shard, t.store.Scripts.Get("worker_adopt"), t.WorkerKeys(r), args...))
	return err
}
