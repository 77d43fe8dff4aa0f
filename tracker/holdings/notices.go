package holdings

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A cancel, and a loss that the worker did not bring about itself, are word for the worker that holds the attempt. The
// script that makes them leaves the word in the outbox of the task's shard; the sweeper carries it to the worker's
// shard; each beat of the worker repeats it until an answer that carried it was handed to the worker's connection.

const (
	noticeLife  = 24 * time.Hour
	noticeRetry = time.Second // until word that could not be carried is tried again
	wordsAtOnce = 50          // written by one script: a word may be 4 KB long
	carryLimit  = 100         // of an outbox, read by one script
)

// letter is one entry of an outbox: word for a worker about an attempt.
type letter struct {
	text   string
	worker string
	entry  string // attempt TAB kind TAB detail
	scope  model.Scope
}

func parseLetter(text string) (letter, bool) {
	worker, entry, ok := strings.Cut(text, schema.PackSep)
	scope, _, named := schema.SplitName(entry)
	return letter{text, worker, entry, scope}, ok && named
}

// TellWorkers has what a shard's outbox holds now told by the workers' next beats. What it cannot take the sweeper does.
func (s *Service) TellWorkers(ctx context.Context, shard int) { _, _ = s.SendNotices(ctx, shard, 0) }

// SendNotices takes the notices in a shard's outbox to the workers' shards. It reports whether there are more.
func (s *Service) SendNotices(ctx context.Context, shard int, grace time.Duration) (more bool, err error) {
	k := s.store.Keys[shard]
	re, err := s.store.Do(ctx, "send notices", s.store.FindCall(shard, store.Overdue{Set: k.Outbox, Wall: true, Grace: grace, Limit: carryLimit}))
	if err != nil {
		return false, err
	}
	texts := store.ReadFound(re)
	byWorker := map[string][]letter{}
	var done, late []string
	for _, text := range texts {
		if l, ok := parseLetter(text); ok {
			byWorker[l.worker] = append(byWorker[l.worker], l)
		} else if text != sentinel {
			done = append(done, text)
		}
	}
	var calls []*store.Call
	var groups [][]letter
	for worker, letters := range byWorker {
		if home, ok := s.store.WorkerShard(worker); ok {
			for part := range slices.Chunk(letters, wordsAtOnce) {
				calls = append(calls, s.notifyCall(home, worker, part))
				groups = append(groups, part)
			}
		} else { // no worker that registered: nobody would ask for it
			done = append(done, textsOf(letters)...)
		}
	}
	s.store.DoAll(ctx, "send notices", calls)
	for i, c := range calls {
		if c.Err != nil {
			late, err = append(late, textsOf(groups[i])...), c.Err
		} else {
			done = append(done, textsOf(groups[i])...)
		}
	}
	after := append(s.noticedCalls(shard, k.Outbox, "", done),
		s.noticedCalls(shard, k.Outbox, noticeRetry, late)...) // those behind what can be carried
	s.store.DoAll(ctx, "send notices", after)
	for _, c := range after {
		if c.Err != nil {
			return false, c.Err
		}
	}
	return len(texts) == carryLimit, err
}

// sentinel is the member of every fixed set that keeps it from being absent.
const sentinel = "!"

func textsOf(letters []letter) []string {
	texts := make([]string, len(letters))
	for i, l := range letters {
		texts[i] = l.text
	}
	return texts
}

func (s *Service) notifyCall(home int, worker string, letters []letter) *store.Call {
	k, name := s.store.Keys[home], schema.TaskName(letters[0].scope, worker)
	args := []any{model.Millis(noticeLife)}
	for _, l := range letters {
		args = append(args, l.entry)
	}
	return store.NewCall(home, s.store.Scripts.Get("notify"), []string{k.Notices(name), k.Worker(name)}, args...)
}

func (s *Service) noticedCalls(shard int, key string, putOff any, entries []string) (calls []*store.Call) {
	if d, ok := putOff.(time.Duration); ok {
		putOff = model.Millis(d)
	}
	for part := range slices.Chunk(entries, wordsAtOnce) {
		args := []any{putOff}
		for _, e := range part {
			args = append(args, e)
		}
		calls = append(calls, store.NewCall(shard, s.store.Scripts.Get("notices_done"), []string{key}, args...))
	}
	return calls
}

// Tell has the answer to a worker's beat say what the notices say that were kept for the worker, as its beat's script gave
// them.
func (s *Service) Tell(h *WorkerHeard, entries []string) {
	for _, entry := range entries {
		p := strings.SplitN(entry, schema.PackSep, 3)
		if len(p) != 3 {
			continue
		}
		scope, id, ok := schema.SplitName(p[0])
		number, _, numbered := schema.SplitAttempt(p[0])
		if !ok || !numbered {
			continue
		}
		h.entries = append(h.entries, entry)
		n := TaskNotice{TaskID: id, Attempt: number}
		switch p[1] {
		case "c":
			if p[2] != "" {
				_ = json.Unmarshal([]byte(p[2]), &n.Reason) // written by cancel, so it is JSON
			}
			h.cancel(n, &model.Attempt{Scope: scope, TaskID: id, Number: number, Member: p[0], Shard: s.store.ShardOf(scope, id)})
		case "l":
			n.Error = model.Code(p[2])
			h.lose(n)
		}
	}
}

// cancel adds a pending cancel, once for each attempt.
func (h *WorkerHeard) cancel(n TaskNotice, a *model.Attempt) {
	if h.tells(n, false) {
		h.Cancels = append(h.Cancels, n)
		h.cancelled = append(h.cancelled, a)
	}
}

// lose adds a lost attempt, once for each.
func (h *WorkerHeard) lose(n TaskNotice) {
	if h.tells(n, true) {
		h.Lost = append(h.Lost, n)
	}
}

// tells tells whether it is the first time.
func (h *WorkerHeard) tells(n TaskNotice, lost bool) bool {
	what := toldOf{OwnedAttempt{n.TaskID, n.Attempt}, lost}
	if h.told[what] {
		return false
	}
	if h.told == nil {
		h.told = map[toldOf]bool{}
	}
	h.told[what] = true
	return true
}

// Notified records that the answer to a worker's beat, with all its word, was handed to the worker's connection. It
// does not wait; what is not recorded the next beat tells again. Cancels come first: their grace period must begin
// before the word of them is forgotten.
func (s *Service) Notified(h *WorkerHeard) {
	s.store.Beside("recording what a worker was told", func() {
		calls := make([]*store.Call, len(h.cancelled))
		for i, a := range h.cancelled {
			k := s.store.Keys[a.Shard]
			calls[i] = store.NewCall(a.Shard, s.store.Scripts.Get("deliver"), []string{k.Clock, k.Cancels, k.Timers}, a.Member)
		}
		s.store.DoAll(context.Background(), "notified", calls)
		for _, c := range calls {
			if c.Err != nil {
				return
			}
		}
		if home, ok := s.store.WorkerShard(h.Worker); ok && len(h.entries) > 0 {
			s.store.DoAll(context.Background(), "notified", s.noticedCalls(home, s.store.Keys[home].Notices(schema.TaskName(h.Scope, h.Worker)), "", h.entries))
		}
	})
}
