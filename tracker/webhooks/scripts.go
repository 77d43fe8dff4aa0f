package webhooks

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/webhooks. Only this file and scripts_deliver.go know the order of their arguments and replies.
type scripts struct {
	save, remove, rotate, read, list, deliveries, again, repair *lua.Script
	begin, resume, peek, taken, push, claim, settle, bury, trim *lua.Script
}

func newScripts(set *lua.Set) *scripts {
	return &scripts{
		save: set.Get("webhook_save"), remove: set.Get("webhook_delete"), rotate: set.Get("webhook_rotate"), read: set.Get("webhook_read"),
		list: set.Get("webhooks_list"), deliveries: set.Get("webhook_deliveries"), again: set.Get("webhook_retry"),
		repair: set.Get("webhook_repair"), resume: set.Get("webhooks_resume"),
		begin: set.Get("webhooks_begin"), peek: set.Get("webhooks_peek"), taken: set.Get("webhooks_taken"),
		push: set.Get("webhook_push"), claim: set.Get("webhook_claim"), settle: set.Get("webhook_settle"), bury: set.Get("webhook_give_up"),
		trim: set.Get("webhook_trim"),
	}
}

// hookRef is a webhook's name and shard.
type hookRef struct {
	scope model.Scope
	id    string
	name  string // <scope>/<id>
	shard int
}

func (s *Service) ref(scope model.Scope, id string) hookRef {
	return hookRef{scope: scope, id: id, name: schema.TaskName(scope, id), shard: s.store.ShardOf(scope, id)}
}

// call returns a call of a script for one webhook.
func (s *Service) call(r hookRef, script *lua.Script, args ...any) *store.Call {
	return store.NewCall(r.shard, script, s.store.Keys[r.shard].OfWebhook(r.name), args...)
}

// saveCall creates a webhook, or without a nonce changes one.
func (s *Service) saveCall(r hookRef, nonce, definition string, on bool, secret string) *store.Call {
	return s.call(r, s.scripts.save, r.scope.String(), r.id, nonce, definition, schema.Flag(on), secret)
}

func (s *Service) removeCall(r hookRef) *store.Call {
	return s.call(r, s.scripts.remove, r.scope.String(), r.id)
}

func (s *Service) rotateCall(r hookRef, secret string) *store.Call {
	return s.call(r, s.scripts.rotate, r.scope.String(), r.id, secret, model.Millis(oldSecretLife), maxOldSecrets)
}

// readCode reads the reply of scripts that return only a code.
func readCode(re store.Reply) int64 { return re.Int(0) }

// readAtOnce is how many records one script reads.
const readAtOnce = 25

// readCall reads webhooks of one shard.
func (s *Service) readCall(refs []hookRef) *store.Call {
	k := s.store.Keys[refs[0].shard]
	keys := make([]string, 0, 4*len(refs))
	for _, r := range refs {
		keys = append(keys, k.Webhook(r.name), k.HookQueue(r.name), k.HookFlight(r.name), k.HookDead(r.name))
	}
	return store.NewCall(refs[0].shard, s.scripts.read, keys)
}

// readRead returns the i-th of them, nil if it does not exist.
func readRead(re store.Reply, i int, r hookRef) *Webhook {
	of := re.List(i)
	return unpackRecord(r.scope, r.id, store.Pairs(of.List(0)), int(of.Int(1)), int(of.Int(2)))
}

// listAtOnce is how many names one script lists.
const listAtOnce = 500

// listCall lists webhooks of one shard whose names have a prefix, starting behind `after`.
func (s *Service) listCall(shard int, prefix, after string, most int) *store.Call {
	return store.NewCall(shard, s.scripts.list, []string{s.store.Keys[shard].Webhooks}, prefix, after, most)
}

type listReply struct {
	total int
	names []string
}

func readList(re store.Reply) listReply { return listReply{int(re.Int(0)), re.List(1).Strings()} }

// beginCall notifies collectors of a shard of a change, and starts collection behind an entry if there was none.
func (s *Service) beginCall(shard int, version, entry string, mark uint16) *store.Call {
	return store.NewCall(shard, s.scripts.begin, []string{s.store.Keys[shard].EventMarks}, version, entry, int(mark))
}

// deliveriesCall lists deliveries with a status, or all for "", behind a number in the order of the list.
func (s *Service) deliveriesCall(r hookRef, of Status, behind string, most int, oldestFirst bool) *store.Call {
	letter := map[Status]string{Delivered: "D", Dead: "X"}[of]
	return s.call(r, s.scripts.deliveries, letter, behind, most, schema.Flag(oldestFirst))
}

type deliveriesReply struct {
	found bool // the webhook exists
	all   []*Delivery
	last  string // number of the last one read
	full  bool   // there may be more
}

func readDeliveries(re store.Reply, most int) (reply deliveriesReply) {
	reply.found = re.Int(0) == 1
	for i := 1; i+1 < len(re); i += 2 {
		reply.last = re.Str(i)
		if d := unpackDelivery(re.Str(i), re.Str(i+1)); d != nil {
			reply.all = append(reply.all, d)
		}
	}
	reply.full = len(re) >= 1+2*most
	return reply
}

func (s *Service) againCall(r hookRef, number string) *store.Call {
	return s.call(r, s.scripts.again, r.name, number)
}

// repairCall makes the records of a webhook consistent, and then checks its deliveries from a number on.
func (s *Service) repairCall(r hookRef, from string) *store.Call {
	return s.call(r, s.scripts.repair, r.scope.String(), r.id, repairDeliveries, from)
}

// readRepair returns what was repaired, and where to continue with the deliveries; "": that was all.
func readRepair(re store.Reply) (done []string, next string) { return re.List(0).Strings(), re.Str(1) }

// resumeCall restarts collection of a shard's events. It replies 1 if it was stopped.
func (s *Service) resumeCall(shard int) *store.Call {
	k := s.store.Keys[shard]
	return store.NewCall(shard, s.scripts.resume, []string{k.EventMarks, k.Events})
}

// sweeperWindow is how long a silent sweeper counts as live.
const sweeperWindow = time.Second
