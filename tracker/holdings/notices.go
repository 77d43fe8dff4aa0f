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

// The worker that holds an attempt gets a notice of a cancel, and of a loss that it did not cause itself. The script that causes them
// puts the notice in the outbox of the task's shard; the sweeper moves it to the worker's shard; and each beat of the worker repeats it
// until a response with it was written to the worker's connection.

const (
	noticeLife    = 24 * time.Hour
	noticeRetry   = time.Second // until the next try for a notice that could not be sent
	noticesAtOnce = 50          // written by one script: a notice may be 4 KB long
	outboxLimit   = 100         // notices of an outbox that one script reads
)

// notice is one entry of an outbox: a message for a worker about an attempt.
type notice struct {
	text   string
	worker string
	entry  string // attempt TAB kind TAB detail
	scope  model.Scope
}

// These are the kinds of notices, as scripts write them.
const (
	noticeCancel = "c"
	noticeLost   = "l"
)

func parseNotice(text string) (notice, bool) {
	worker, entry, ok := strings.Cut(text, schema.PackSep)
	scope, _, named := schema.SplitName(entry)
	return notice{text, worker, entry, scope}, ok && named
}

// NotifyWorkers moves the notices in a shard's outbox to the workers, so that their next beats return them. The sweeper delivers what this
// could not.
func (s *Service) NotifyWorkers(ctx context.Context, shard int) { _, _ = s.SendNotices(ctx, shard, 0) }

// SendNotices moves the notices in a shard's outbox that are at least `grace` old to the workers' shards. It reports whether there are
// more, and returns the last error.
func (s *Service) SendNotices(ctx context.Context, shard int, grace time.Duration) (more bool, err error) {
	outbox := s.store.Keys[shard].Outbox
	overdue := store.Overdue{Set: outbox, Wall: true, Grace: grace, Limit: outboxLimit}
	re, err := s.store.Do(ctx, "send notices", s.store.FindCall(shard, overdue))
	if err != nil {
		return false, err
	}
	texts := store.ReadFound(re)
	groups, done := s.byWorker(texts)
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		home, _ := s.store.WorkerShard(group[0].worker)
		calls[i] = s.notifyCall(home, group)
	}
	s.store.DoAll(ctx, "send notices", calls)
	var postponed []string
	for i, c := range calls {
		if c.Err != nil {
			postponed, err = append(postponed, textsOf(groups[i])...), c.Err
		} else {
			done = append(done, textsOf(groups[i])...)
		}
	}
	after := append(s.noticesDone(shard, outbox, 0, done),
		s.noticesDone(shard, outbox, noticeRetry, postponed)...) // they go behind those that can be sent
	s.store.DoAll(ctx, "send notices", after)
	if err := store.FirstError(after); err != nil {
		return false, err
	}
	return len(texts) == outboxLimit, err
}

// byWorker groups the entries of an outbox by worker, each group for one script call. It also returns the undeliverable ones: they are
// for a worker that never registered, or are no notices.
func (s *Service) byWorker(texts []string) (groups [][]notice, undeliverable []string) {
	of := map[string][]notice{}
	for _, text := range texts {
		n, ok := parseNotice(text)
		if _, registered := s.store.WorkerShard(n.worker); ok && registered {
			of[n.worker] = append(of[n.worker], n)
		} else if text != sentinel {
			undeliverable = append(undeliverable, text)
		}
	}
	for _, notices := range of {
		groups = slices.AppendSeq(groups, slices.Chunk(notices, noticesAtOnce))
	}
	return groups, undeliverable
}

// sentinel is the member of every fixed set that keeps the set from being deleted.
const sentinel = "!"

func textsOf(notices []notice) []string {
	texts := make([]string, len(notices))
	for i, n := range notices {
		texts[i] = n.text
	}
	return texts
}

// noticesDone returns the calls that remove entries of a set of notices, or postpone them unless putOff is 0.
func (s *Service) noticesDone(shard int, key string, putOff time.Duration, entries []string) (calls []*store.Call) {
	for part := range slices.Chunk(entries, noticesAtOnce) {
		calls = append(calls, s.noticesDoneCall(shard, key, putOff, part))
	}
	return calls
}

// WorkerBeatResponse is the response to a worker's beat. Its creator owns it until it is passed to Notified.
type WorkerBeatResponse struct {
	At            time.Time
	ShouldDrain   bool
	Ended         bool      // its drain has finished, which the response reports; no later beat of it is accepted
	DrainDeadline time.Time // zero: none
	Interval      time.Duration
	Timeout       time.Duration
	Cancels       []TaskNotice // attempts to stop gracefully
	Lost          []TaskNotice // attempts that the worker has lost

	Scope     model.Scope
	Worker    string
	Inventory string           // number of its inventory; "": none, or older than another one
	notices   []string         // repeated until Notified
	cancelled []*model.Attempt // the attempts of Cancels
	listed    map[noticeKey]bool
}

// TaskNotice notifies a worker about one of its attempts.
type TaskNotice struct {
	TaskID  string
	Attempt int
	Reason  string     // of a cancel; may be empty
	Error   model.Code // why it was lost
}

// noticeKey is one notice about an attempt, which a response contains once.
type noticeKey struct {
	attempt OwnedAttempt
	lost    bool // else it is a cancel
}

// AddNotices adds the worker's notices, which the script of its beat has listed, to the response.
func (s *Service) AddNotices(h *WorkerBeatResponse, notices []string) {
	for _, entry := range notices {
		p := strings.SplitN(entry, schema.PackSep, 3)
		if len(p) != 3 {
			continue
		}
		scope, id, ok := schema.SplitName(p[0])
		number, _, numbered := schema.SplitAttempt(p[0])
		if !ok || !numbered {
			continue
		}
		h.notices = append(h.notices, entry)
		n := TaskNotice{TaskID: id, Attempt: number}
		switch p[1] {
		case noticeCancel:
			if p[2] != "" {
				_ = json.Unmarshal([]byte(p[2]), &n.Reason) // cancel wrote it, so it is JSON
			}
			h.cancel(n, &model.Attempt{Scope: scope, TaskID: id, Number: number, Member: p[0], Shard: s.store.ShardOf(scope, id)})
		case noticeLost:
			n.Error = model.Code(p[2])
			h.lose(n)
		}
	}
}

// cancel adds a pending cancel, once for each attempt.
func (h *WorkerBeatResponse) cancel(n TaskNotice, a *model.Attempt) {
	if h.isNew(n, false) {
		h.Cancels = append(h.Cancels, n)
		h.cancelled = append(h.cancelled, a)
	}
}

// lose adds a lost attempt, once for each.
func (h *WorkerBeatResponse) lose(n TaskNotice) {
	if h.isNew(n, true) {
		h.Lost = append(h.Lost, n)
	}
}

// isNew reports whether the response does not contain the notice yet.
func (h *WorkerBeatResponse) isNew(n TaskNotice, lost bool) bool {
	what := noticeKey{OwnedAttempt{n.TaskID, n.Attempt}, lost}
	if h.listed[what] {
		return false
	}
	if h.listed == nil {
		h.listed = map[noticeKey]bool{}
	}
	h.listed[what] = true
	return true
}

// Notified records that the response to a worker's beat, with all its notices, was written to the worker's connection. It does not wait;
// the next beat repeats what is not recorded. Cancels come first: their grace period must begin before their notice is removed.
func (s *Service) Notified(h *WorkerBeatResponse) {
	s.store.Go("recording which notices a worker received", func() {
		ctx := context.Background()
		if err := s.beats.CancelsDelivered(ctx, "notified", h.cancelled); err != nil {
			return
		}
		if home, ok := s.store.WorkerShard(h.Worker); ok && len(h.notices) > 0 {
			key := s.store.Keys[home].Notices(schema.TaskName(h.Scope, h.Worker))
			s.store.DoAll(ctx, "notified", s.noticesDone(home, key, 0, h.notices))
		}
	})
}
