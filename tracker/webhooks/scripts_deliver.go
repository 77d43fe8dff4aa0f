package webhooks

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// This file has the scripts with which sweepers collect and deliver.

// dueAtOnce is how many webhooks of a shard one look returns: as many as can exist, since one tenant's may be due all the time.
const dueAtOnce = MaxOfAll

// peekCall looks at several shards, as many as one call may cover. `wait` returns for how long a shard must have been free before it is
// taken; negative: it is neither taken nor kept.
func (s *Service) peekCall(who string, shards []int, wait func(shard int) time.Duration) *store.Call {
	keys, args := make([]string, 0, 3*len(shards)), []any{who, model.Millis(lease), model.Millis(sweeperWindow), dueAtOnce}
	for _, shard := range shards {
		k := s.store.Keys[shard]
		keys = append(keys, k.EventMarks, k.Sweepers, k.HookDue)
		if w := wait(shard); w >= 0 {
			args = append(args, model.Millis(w))
		} else {
			args = append(args, "")
		}
	}
	return store.NewCall(shards[0], s.scripts.peek, keys, args...)
}

// peekReply is the result of one look at a shard.
type peekReply struct {
	mine    bool
	taken   bool // events are collected for webhooks
	at      events.Position
	entry   string // of at
	version string
	live    []string // sweepers
	due     []string // names of webhooks
}

func readPeek(r store.Reply) peekReply {
	at := events.AtEntry(r.Str(2), uint16(r.Int(3)))
	if r.Str(2) == firstEntry {
		at = events.Position{}
	}
	return peekReply{
		mine: r.Int(0) == 1, taken: r.Int(1) == 1, at: at, entry: r.Str(2), version: r.Str(4),
		live: r.List(5).Strings(), due: r.List(6).Strings(),
	}
}

// firstEntry is the beginning of a shard, in a form that scripts compare with IDs.
const firstEntry = "0-0"

// takenCall records how far a shard's events were collected; `none`: there are no webhooks left.
func (s *Service) takenCall(shard int, from peekReply, to events.Position, none bool) *store.Call {
	entry, last := firstEntry, ""
	if !to.IsStart() {
		entry = to.ID()
	}
	if none {
		last = "1"
	}
	return store.NewCall(shard, s.scripts.taken, []string{s.store.Keys[shard].EventMarks}, from.version, from.entry, entry, int(to.Mark), last)
}

// pushArgs is the origin of the messages of one call.
type pushArgs struct {
	shard  string // source of the events; "": a request
	last   string // the ID of the last entry, or of that request
	reread string // name of the reading when the shard is read from its beginning, the same when it is repeated; "": it is read on
	most   int64  // limit of the bytes of all deliveries of the webhook
}

// gapArgs returns the arguments from which scripts make the message about dropped deliveries.
func gapArgs(r hookRef) []any {
	return []any{gapText(r.scope, r.id), typeGap, "gap_" + suffixOf(r.name)[1:] + "_"}
}

// pushCall adds messages to a webhook's queue: at most those of one read of a shard.
func (s *Service) pushCall(r hookRef, a pushArgs, messages []message) *store.Call {
	args := append([]any{r.scope.String(), r.id, a.most, a.shard, a.last, a.reread}, gapArgs(r)...)
	for _, m := range messages {
		args = append(args, m.entry, m.event, m.kind, m.subject, m.id, m.body)
	}
	return s.call(r, s.scripts.push, args...)
}

type pushReply struct {
	code    int64
	put     int    // how many are in the queue now
	dropped int    // how many were dropped to make room
	newest  string // number of the newest delivery
	again   bool   // nothing was added, since more must be dropped than one call may drop
}

func readPush(re store.Reply) pushReply {
	return pushReply{code: re.Int(0), dropped: int(re.Int(1)), newest: padded(re.Int(2)), put: int(re.Int(3)), again: re.Int(4) == 1}
}

// trimCall sets the limit of the bytes of a webhook's deliveries.
func (s *Service) trimCall(r hookRef, most int64) *store.Call {
	return s.call(r, s.scripts.trim, append([]any{r.scope.String(), r.id, most}, gapArgs(r)...)...)
}

func readTrim(re store.Reply) (dropped int, again bool) { return int(re.Int(0)), re.Int(1) == 1 }

// claimCall claims due deliveries.
func (s *Service) claimCall(r hookRef, who string, most int) *store.Call {
	return s.call(r, s.scripts.claim, r.name, who, most)
}

// claimed is a claimed delivery with its message.
type claimed struct {
	*Delivery
	number string
	body   []byte
}

type claimReply struct {
	code    int64
	url     string
	secrets []aSecret
	now     time.Time // of the shard's server
	all     []claimed
}

func readClaim(re store.Reply, r hookRef) claimReply {
	reply := claimReply{code: re.Int(0)}
	if len(re) < 4 {
		return reply
	}
	if w := unpackRecord(r.scope, r.id, map[string]string{"d": re.Str(1)}, 0, 0); w != nil {
		reply.url = w.Settings.URL
	}
	reply.secrets, reply.now = unpackSecrets(re.Str(2)), re.Time(3)
	for i := 4; i+2 < len(re); i += 3 {
		if d := unpackDelivery(re.Str(i), re.Str(i+1)); d != nil {
			reply.all = append(reply.all, claimed{d, re.Str(i), []byte(re.Str(i + 2))})
		}
	}
	return reply
}

// tryResult is the result of a delivery's try.
type tryResult string

const (
	received       tryResult = "d"
	retried        tryResult = "r"
	givenUp        tryResult = "x"
	webhookDeleted tryResult = "g" // the webhook does not exist any more
)

// outcome is the result of one try, with the response.
type outcome struct {
	claimed
	result tryResult
	wait   time.Duration // until the next try
	answer string        // the response as JSON
}

func (s *Service) settleCall(r hookRef, who string, all []outcome) *store.Call {
	args := append([]any{r.scope.String(), r.id, who, maxFinished, model.Millis(longestFailing)}, gapArgs(r)...)
	for _, o := range all {
		args = append(args, o.number, string(o.result), model.Millis(o.wait), o.answer)
	}
	return s.call(r, s.scripts.settle, args...)
}

type settleReply struct {
	recorded int
	off      string // why the webhook was disabled; "": it was not
	dropped  int    // other deliveries, to make room for the responses
}

func readSettle(re store.Reply) settleReply {
	return settleReply{int(re.Int(0)), re.Str(1), int(re.Int(2))}
}

// buryAtOnce is how many deliveries one script gives up.
const buryAtOnce = 50

func (s *Service) buryCall(r hookRef) *store.Call {
	return s.call(r, s.scripts.bury, r.name, maxFinished, buryAtOnce)
}

// readBury returns how many deliveries are left.
func readBury(re store.Reply) int64 { return re.Int(0) }
