package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// A worker's token contains its registration, so that a worker whose record the store has lost is adopted by its next request, as
// an attempt is. Its totals and a drain are not part of the registration and stay lost.

// maxCarried bounds the part of a registration in a token, in bytes, since every heartbeat includes the token.
const maxCarried = 1024

// essential are the required fields of a worker. The optional ones are included in this order while they fit.
var (
	essential = []string{
		schema.WorkerQueue, schema.WorkerMachine, schema.WorkerLineage, schema.WorkerMaxConcurrent,
		schema.WorkerInterval, schema.WorkerTimeout, schema.WorkerIdentity, schema.WorkerRegistered,
	}
	optional = []string{
		schema.WorkerTypes, schema.WorkerRuntimes, schema.WorkerLabels, schema.WorkerPID,
		schema.WorkerHostname, schema.WorkerName, schema.WorkerVersion, schema.WorkerProbeURL,
	}
)

// carried returns the part of a record that goes into the token; both are names and values.
func carried(record []string) (out []string) {
	value := map[string]string{}
	for i := 0; i+1 < len(record); i += 2 {
		value[record[i]] = record[i+1]
	}
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

// Adopt restores a worker that the store does not know from the record in its verified token. It leaves a known worker unchanged.
func (s *registrar) Adopt(ctx context.Context, scope model.Scope, id string, record []string) error {
	const op = "adopt"
	ctx = s.store.Within(ctx, 0)
	r, ok := s.store.WorkerRef(scope, id)
	if !ok {
		return NoWorker(op)
	}
	record = record[:len(record)/2*2]
	for i := 0; i < len(record); i += 2 {
		switch record[i] {
		case schema.WorkerMachine:
			r.Machine = record[i+1]
		case schema.WorkerLineage:
			r.Lineage = record[i+1]
		case schema.WorkerIdentity:
			r.Identity = record[i+1]
		}
	}
	if r.Machine == "" || s.store.MachineShard(scope, r.Machine) != r.Shard {
		return NoWorker(op) // the token is from a deployment with other shards
	}
	r.Identity = identityOr(r.Identity, id)
	_, err := s.store.Do(ctx, op, s.scripts.adoptCall(r, record))
	return err
}
