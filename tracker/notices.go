package tracker

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
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
	scope  Scope
}

func parseLetter(text string) (letter, bool) {
	worker, entry, ok := strings.Cut(text, packSep)
	scope, _, named := splitName(entry)
	return letter{text, worker, entry, scope}, ok && named
}

// tellWorkers has what a shard's outbox holds now told by the workers' next beats. What it cannot take the sweeper does.
func (t *Tracker) tellWorkers(shard int) { _, _ = t.carry(shard, 0) }

// carry takes the word in a shard's outbox to the workers' shards. It tells whether there is more.
func (t *Tracker) carry(shard int, grace time.Duration) (more bool, err error) {
	k := t.store.keys[shard]
	re, err := t.store.do("carry", newCall(shard, t.store.scripts.Get("find"), []string{k.clock, k.outbox}, "wall", 0, ms(grace), carryLimit))
	if err != nil {
		return false, err
	}
	texts := re.list(2).strings()
	byWorker := map[string][]letter{}
	var done, late []string
	for _, text := range texts {
		if l, ok := parseLetter(text); ok {
			byWorker[l.worker] = append(byWorker[l.worker], l)
		} else if text != sentinel {
			done = append(done, text)
		}
	}
	var calls []*call
	var groups [][]letter
	for worker, letters := range byWorker {
		if home, ok := t.store.workerShard(worker); ok {
			for part := range slices.Chunk(letters, wordsAtOnce) {
				calls = append(calls, t.notifyCall(home, worker, part))
				groups = append(groups, part)
			}
		} else { // no worker that registered: nobody would ask for it
			done = append(done, textsOf(letters)...)
		}
	}
	t.store.doAll("carry", calls)
	for i, c := range calls {
		if c.err != nil {
			late, err = append(late, textsOf(groups[i])...), c.err
		} else {
			done = append(done, textsOf(groups[i])...)
		}
	}
	after := append(t.noticedCalls(shard, k.outbox, "", done),
		t.noticedCalls(shard, k.outbox, noticeRetry, late)...) // those behind what can be carried
	t.store.doAll("carry", after)
	for _, c := range after {
		if c.err != nil {
			return false, c.err
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

func (t *Tracker) notifyCall(home int, worker string, letters []letter) *call {
	k, name := t.store.keys[home], taskName(letters[0].scope, worker)
	args := []any{ms(noticeLife)}
	for _, l := range letters {
		args = append(args, l.entry)
	}
	return newCall(home, t.store.scripts.Get("notify"), []string{k.notices(name), k.worker(name)}, args...)
}

func (t *Tracker) noticedCalls(shard int, key string, putOff any, entries []string) (calls []*call) {
	if d, ok := putOff.(time.Duration); ok {
		putOff = ms(d)
	}
	for part := range slices.Chunk(entries, wordsAtOnce) {
		args := []any{putOff}
		for _, e := range part {
			args = append(args, e)
		}
		calls = append(calls, newCall(shard, t.store.scripts.Get("notices_done"), []string{key}, args...))
	}
	return calls
}

// hear reads word for a worker as its beat's script gave it.
func (h *WorkerHeard) hear(t *Tracker, entries []string) {
	for _, entry := range entries {
		p := strings.SplitN(entry, packSep, 3)
		if len(p) != 3 {
			continue
		}
		scope, id, ok := splitName(p[0])
		number, _, numbered := splitAttempt(p[0])
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
			h.cancel(n, &Attempt{Scope: scope, TaskID: id, Number: number, member: p[0], shard: t.store.shardOf(scope, id)})
		case "l":
			n.Error = Code(p[2])
			h.lose(n)
		}
	}
}

// cancel adds a pending cancel, once for each attempt.
func (h *WorkerHeard) cancel(n TaskNotice, a *Attempt) {
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
func (t *Tracker) Notified(h *WorkerHeard) {
	t.background.Go(func() {
		defer t.store.contain("recording what a worker was told")
		calls := make([]*call, len(h.cancelled))
		for i, a := range h.cancelled {
			k := t.store.keys[a.shard]
			calls[i] = newCall(a.shard, t.store.scripts.Get("deliver"), []string{k.clock, k.cancels, k.timers}, a.member)
		}
		t.store.doAll("notified", calls)
		for _, c := range calls {
			if c.err != nil {
				return
			}
		}
		if home, ok := t.store.workerShard(h.worker); ok && len(h.entries) > 0 {
			t.store.doAll("notified", t.noticedCalls(home, t.store.keys[home].notices(taskName(h.scope, h.worker)), "", h.entries))
		}
	})
}
