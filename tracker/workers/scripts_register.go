package workers

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// registrationCall stores which worker the key of a registration identifies (registration.lua); a life of 0 reserves nothing.
func (s *scripts) registrationCall(n *model.NewWorker, g *registration, life time.Duration) *store.Call {
	shard := s.store.ShardOf(n.Scope, n.IdempotencyKey)
	return store.NewCall(shard, s.registration, []string{s.store.Keys[shard].Registration(n.Scope, n.IdempotencyKey)},
		n.IdempotencyHash, g.id, model.Millis(g.interval), model.Millis(g.interval), model.Millis(g.timeout), model.Millis(life))
}

type registrationReply struct {
	same  bool         // the body is that of the first one
	known bool         // the key identifies a worker
	of    registration // of that worker
}

func readRegistration(re store.Reply) registrationReply {
	return registrationReply{
		same: re.Int(0) == 1, known: re.Str(1) != "",
		of: registration{
			id: re.Str(1), interval: schema.Duration(re.Str(2), 0),
			timeout: schema.Duration(re.Str(4), 0), until: re.Str(5),
		},
	}
}

// registerCall registers a worker (worker_register.lua), superseding another one unless it is nil. The record has fields as name
// and value; `until` is wall ms or "".
func (s *scripts) registerCall(r, supersedes *schema.WorkerRef, until string, record []string) *store.Call {
	keys, old := s.keysWithHold(r), ""
	if supersedes != nil {
		keys, old = s.store.Keys[r.Shard].OfWorker(keys, supersedes), supersedes.ID
	}
	args := []any{r.Scope.String(), r.ID, old, s.store.Shards(), model.Millis(s.opts.OfflineRetention), until}
	return store.NewCall(r.Shard, s.register, keys, append(args, pairs(record)...)...)
}

type registerReply struct {
	code       int64
	at         time.Time
	superseded string // the worker that it superseded; "": none
	conflict   bool   // report the conflict, since it keeps happening
	status     model.WorkerStatus
	holder     string // MISMATCH: the current holder of the identity; OFFLINE: the worker whose hold refuses it, "": its machine's
	reason     string // OFFLINE: the reason of the hold
}

func readRegister(re store.Reply) registerReply {
	r := registerReply{code: re.Int(0), at: re.Time(1)}
	if r.code == schema.CodeOK {
		r.superseded, r.conflict, r.status = re.Str(2), re.Str(3) != "", model.StatusOf(re.Str(4))
	} else {
		r.holder = re.Str(2)
		if r.code == schema.CodeOffline {
			r.reason = re.Str(3)
		}
	}
	return r
}

// adoptCall restores a worker whose record the store has lost (worker_adopt.lua).
func (s *scripts) adoptCall(r *schema.WorkerRef, record []string) *store.Call {
	args := []any{r.Scope.String(), r.ID, s.store.Shards(), model.Millis(s.opts.OfflineRetention)}
	return store.NewCall(r.Shard, s.adopt, s.keysWithHold(r), append(args, pairs(record)...)...)
}

// identityCall reads which worker has an identity (worker_identity.lua).
func (s *scripts) identityCall(shard int, scope model.Scope, identity string) *store.Call {
	return store.NewCall(shard, s.identity, []string{s.store.Keys[shard].Identity(scope, identity)})
}

// readIdentity returns that worker, "" for none.
func readIdentity(re store.Reply) string { return re.Str(0) }

// namesCall reads what identifies the other keys of workers, which are in one shard (worker_names.lua).
func (s *scripts) namesCall(refs []*schema.WorkerRef) *store.Call {
	return store.NewCall(refs[0].Shard, s.names, s.recordKeys(refs))
}

// readNames completes refs and returns those that exist.
func readNames(re store.Reply, refs []*schema.WorkerRef) (found []*schema.WorkerRef) {
	for i, r := range refs {
		if r.Machine = re.Str(3 * i); r.Machine != "" {
			r.Lineage, r.Identity = re.Str(3*i+1), identityOr(re.Str(3*i+2), r.ID)
			found = append(found, r)
		}
	}
	return found
}
