package events

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// MaxPage is the largest number of events in a page.
const MaxPage = 100

// These limit what is read for one page, so that a filter which few events pass takes no longer than others.
const (
	mostRead   = 5_000 // entries: about 50 ms of Redis and of this process together
	firstReads = 16    // of each shard at first, so that a page over all shards reads little that it does not return
)

// Query describes a page of events.
type Query struct {
	Filter
	After string // a cursor, now, or a time in RFC 3339; "": the first event, or with Back the newest
	Field string // name of After in errors; "": after
	Back  bool   // newest first
	Size  int    // 1 to MaxPage
}

// Page is the result of a Query.
type Page struct {
	Events []*Event // resolved, ordered by time; those of one shard in the order of their stream
	Next   string   // cursor behind them; never empty
	More   bool     // there may be more behind Next now; false: all stored events were read
	Gap    *Gap     // nil: no events are missing
}

// List returns the page that a query describes. It may be short although there is more, when few events pass the filter. It fails for an
// invalid query, and when the tenant has used up its rate.
func (s *Service) List(ctx context.Context, q Query) (*Page, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	ctx = s.store.Within(ctx, 0)
	at, err := s.Begin(ctx, cmp.Or(q.Field, "after"), q.After, q.Back)
	if err != nil {
		return nil, err
	}
	w := s.newWalk(q, at)
	defer w.rest()
	page, err := w.page(ctx)
	if err != nil {
		return nil, err
	}
	if w.paced > 0 && w.read == 0 {
		return nil, tooManyReads(w.paced)
	}
	page.More = w.left()
	w.holdStill()
	page.Next = s.Cursor(w.at, q.Back)
	return page, nil
}

func everyShard(s *store.Store) []int {
	all := make([]int, s.Shards())
	for i := range all {
		all[i] = i
	}
	return all
}

// Begin returns where a reader starts: at a cursor, now, at a time, or for "" at the first event, or with `back` at the newest. `field`
// is the name of the text in errors.
func (s *Service) Begin(ctx context.Context, field, after string, back bool) (Positions, error) {
	switch {
	case after == "" && !back:
		return everywhere(s.store.Shards(), Position{}), nil
	case after == "" || after == "now" && back:
		return everywhere(s.store.Shards(), Position{kind: atNewest}), nil
	case after == "now":
		return s.Now(ctx)
	}
	if t, err := time.Parse(time.RFC3339, after); err == nil {
		return everywhere(s.store.Shards(), AtTime(t)), nil
	}
	return s.ParseCursor(field, after, back)
}

// Now returns the positions behind all events so far.
func (s *Service) Now(ctx context.Context) (Positions, error) {
	at := make(Positions, s.store.Shards())
	reads, err := s.read(ctx, everyShard(s.store), 1, sought{}, func(int) Position { return Position{kind: atNewest} }, true)
	for _, l := range reads {
		if len(l.Events) > 0 {
			at[l.Shard] = l.At
		}
	}
	return at, err
}

// walk reads several shards and merges their events in the order of time.
type walk struct {
	service *Service
	query   Query
	at      Positions // behind what was taken from the buffers
	shards  []int
	buffers map[int][]*Event // by shard: read, but not taken yet
	more    map[int]bool     // by shard: there may be more to read
	read    int              // entries read for the page
	gap     *Gap             // not returned yet
	taken   []*Event         // not returned yet

	everyCursor bool     // collect the cursor behind each event
	cursors     []string // behind the taken events

	charged reader
	granted int           // entries that are charged and not read yet
	turn    time.Time     // from when it may read them
	paced   time.Duration // how long it must wait before it reads on; 0: it may read
}

func (s *Service) newWalk(q Query, at Positions) *walk {
	w := &walk{
		service: s, query: q, at: at, shards: q.Filter.shards(s.store), buffers: map[int][]*Event{}, more: map[int]bool{},
		charged: reader{tenant: q.Tenant},
	}
	if w.shards == nil {
		w.shards = everyShard(s.store)
	}
	w.again()
	return w
}

// again makes the walk read on after it has reached the end.
func (w *walk) again() {
	for _, shard := range w.shards {
		w.more[shard] = true
	}
}

// left reports whether there may be more to return.
func (w *walk) left() bool {
	return slices.ContainsFunc(w.shards, func(shard int) bool { return w.more[shard] || len(w.buffers[shard]) > 0 })
}

// page returns the next page. After an error nothing is lost: the next page starts with what was taken.
func (w *walk) page(ctx context.Context) (*Page, error) {
	w.read = 0
	for ofEach := firstReads; len(w.taken) < w.query.Size; ofEach = min(2*ofEach, readOfEach) {
		if err := w.fill(ctx, ofEach); err != nil {
			return nil, err
		}
		w.choose()
		if !w.wants() || w.read >= mostRead || w.paced > 0 || w.service.store.IsLate(ctx, nil) {
			break
		}
	}
	if w.query.MachineID == "" {
		if err := w.service.Resolve(ctx, w.taken); err != nil {
			return nil, err
		}
	}
	p := &Page{Events: append([]*Event{}, w.taken...), Gap: w.gap}
	w.taken, w.gap = nil, nil
	return p, nil
}

// choose takes matching events until the page is full or more must be read.
func (w *walk) choose() {
	for len(w.taken) < w.query.Size {
		e := w.take()
		if e == nil {
			return
		}
		if w.query.Match(e) {
			w.taken = append(w.taken, e)
			if w.everyCursor {
				w.cursors = append(w.cursors, w.service.Cursor(w.at, false))
			}
		}
	}
}

// wants reports whether a shard has an empty buffer and may have more to read.
func (w *walk) wants() bool {
	return slices.ContainsFunc(w.shards, func(shard int) bool { return w.more[shard] && len(w.buffers[shard]) == 0 })
}

// fill reads on in the shards with empty buffers.
func (w *walk) fill(ctx context.Context, ofEach int) error {
	for first := true; w.wants() && w.read < mostRead; first = false {
		var empty []int
		for _, shard := range w.shards {
			if len(w.buffers[shard]) == 0 && w.more[shard] {
				empty = append(empty, shard)
			}
		}
		if first && !w.mayRead(ctx, len(empty)*ofEach) { // a read that was begun is finished, and charged
			return nil
		}
		reads, err := w.service.read(ctx, empty, ofEach, w.query.sought(), func(shard int) Position { return w.at[shard] }, w.query.Back)
		if err != nil {
			return err
		}
		w.charge(reads)
		for _, l := range reads {
			w.buffers[l.Shard], w.more[l.Shard] = l.Events, l.More
			w.read += 1 + l.read
			if w.gap = w.gap.and(l.Gap); l.Lost {
				w.at[l.Shard] = Position{}
			}
			if w.query.MachineID != "" {
				if err := w.service.Resolve(ctx, w.candidates(l.Events)); err != nil {
					return err
				}
			}
		}
		if w.service.store.IsLate(ctx, nil) {
			return nil
		}
	}
	return nil
}

// mayRead charges entries, and reports whether they may be read now. A page waits for its turn if the wait is short; a stream keeps its
// turn, and returns later.
func (w *walk) mayRead(ctx context.Context, entries int) bool {
	if w.granted == 0 {
		atMost := pageWait
		if w.charged.streams {
			atMost = math.MaxInt64
		}
		now := time.Now()
		wait, ok := w.service.pace.reserve(w.charged, entries, atMost, now)
		if wait > 0 {
			w.service.metrics.paced.Inc()
		}
		if w.paced = wait; !ok {
			return false
		}
		w.granted, w.turn = entries, now.Add(wait)
	}
	if w.paced = max(0, time.Until(w.turn)); w.paced > 0 && !w.charged.streams && store.Pause(ctx, w.paced) {
		w.paced = 0
	}
	return w.paced == 0
}

// charge deducts what was read from what was charged, and refunds the rest.
func (w *walk) charge(reads []ShardRead) {
	for _, l := range reads {
		w.granted -= 1 + l.read
	}
	w.rest()
}

// rest refunds what was charged and not read.
func (w *walk) rest() {
	if w.granted != 0 {
		w.service.pace.refund(w.charged, w.granted)
		w.granted = 0
	}
}

func tooManyReads(wait time.Duration) error {
	return &model.Error{Code: model.Overloaded, TooMany: true, Op: "events", RetryAfter: wait, Message: fmt.Sprintf(
		"The tenant's requests read more than the %d stored events a second that this replica reads for each tenant; wait as Retry-After "+
			"says, then retry. Filters by subject or run read less than others", readsPerSecond)}
}

// candidates returns the events that pass the filter apart from their machine, which entries do not contain.
func (w *walk) candidates(all []*Event) (some []*Event) {
	for _, e := range all {
		if w.query.matchStored(e) {
			some = append(some, e)
		}
	}
	return some
}

// take returns the next event of all shards; nil: a shard must be read on first, or none is left.
func (w *walk) take() *Event {
	if w.wants() {
		return nil
	}
	next := -1
	for _, shard := range w.shards {
		if len(w.buffers[shard]) > 0 && (next < 0 || w.precedes(w.buffers[shard][0], w.buffers[next][0])) {
			next = shard
		}
	}
	if next < 0 {
		return nil
	}
	e := w.buffers[next][0]
	w.buffers[next], w.at[next] = w.buffers[next][1:], e.At
	return e
}

// precedes reports whether a comes before b in the order of the query.
func (w *walk) precedes(a, b *Event) bool {
	if w.query.Back {
		a, b = b, a
	}
	return a.Ms < b.Ms
}

// holdStill fixes the position of shards from which nothing was taken, so that the next page goes back from here and not from the newest
// event then.
func (w *walk) holdStill() {
	for _, shard := range w.shards {
		if b := w.buffers[shard]; w.at[shard].kind == atNewest && len(b) > 0 {
			w.at[shard] = Position{Ms: b[0].At.Ms, Seq: b[0].At.Seq + 1, kind: atEntry}
		}
	}
}
