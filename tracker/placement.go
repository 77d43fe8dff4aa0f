package tracker

import (
	"encoding/json"
	"slices"
	"time"
)

// A placed task is pinned to the worker that was selected for it when it was created. Between the selection and the
// creation a reservation stands for it, so that many placed at once do not all find the same worker empty. When it
// comes back to its queue, or its worker ends or drains first, the pin goes and a sweeper places it again; until then
// any worker that can run it may have it.

// placementLife is more than a creation takes: a reservation that a dead replica left behind ends by then.
const placementLife = 5 * time.Second

// placement is a worker that has room for one more, reserved.
type placement struct {
	worker *Worker
	name   string
}

// placer places tasks that ask the same, one after the other.
type placer struct {
	t        *Tracker
	op       string
	patience time.Duration  // how long to wait in all for others' reservations to become tasks, or nothing
	mine     map[string]int // by worker: reservations of the same request, for tasks that are still to be created
	settle   func()         // creates what has a place already, before others are waited for; nil: there is nothing
}

const placePause = 5 * time.Millisecond // until a worker that others have reserved is judged again

// place selects a worker and reserves a place there. What the worker holds is counted again once the reservation
// stands; one that has filled up by then is judged anew. A worker that is full only because others have reserved is not
// full: a reservation may be one for a task that is counted already, or about to be given back. It is judged again until
// none is in the way, and all end by themselves.
func (p *placer) place(s *Selector, left []*Worker, found *Selection) (*placement, error) {
	var reserved []*Worker
	rejected := func(w *Worker, f Filter) {
		found.Rejected[f]++
		left = slices.DeleteFunc(left, func(o *Worker) bool { return o == w })
	}
	for tries := 3*len(left) + 8; ; tries-- {
		switch began := time.Now(); {
		case len(left) > 0 || len(reserved) == 0:
		case len(p.mine) > 0: // others may wait for these
			p.settle()
			left, reserved = reserved, nil
		case p.patience > 0:
			time.Sleep(jittered(placePause))
			p.patience -= time.Since(began)
			left, reserved = reserved, nil
		}
		if len(left) == 0 {
			found.Rejected[ByCapacity] += len(reserved)
			return nil, nobodyLeft(p.op, NoCapacity, found)
		}
		rank(left, s.Strategy)
		at := &placement{worker: left[0], name: newID("")}
		w, before := at.worker, *at.worker
		others, ok, err := p.reserve(at)
		if err != nil {
			return nil, err
		}
		switch {
		case !ok:
			rejected(w, ByStatus)
		case !w.passes(ByCapacity, s):
			p.t.unreserve(p.op, []*placement{at})
			if w.Placed -= others - p.mine[w.ID]; !w.passes(ByCapacity, s) {
				rejected(w, ByCapacity)
				continue
			}
			reserved = append(reserved, w)
			left = slices.DeleteFunc(left, func(o *Worker) bool { return o == w })
		case tries > 0 && w.moved(&before, s.Strategy) && len(left) > 1:
			p.t.unreserve(p.op, []*placement{at}) // others were faster: is it still the best?
		default:
			w.Placed++
			p.mine[w.ID]++
			return at, nil
		}
	}
}

// moved tells whether what a strategy goes by has changed since the worker was ranked.
func (w *Worker) moved(before *Worker, strategy string) bool {
	switch strategy {
	case RoundRobin:
		return w.lastSelected.After(before.lastSelected)
	case "leastLoaded":
		return w.load() > before.load()
	}
	return false
}

// reserve reserves a place and then counts the worker's load, with the reservations that stood before it. False: it is
// not ONLINE any more.
func (p *placer) reserve(at *placement) (others int, ok bool, err error) {
	t, w := p.t, at.worker
	shard, _ := t.store.workerShard(w.ID)
	k, name := t.store.keys[shard], taskName(w.Scope, w.ID)
	c := newCall(shard, t.store.scripts.Get("worker_selected"), []string{k.worker(name), k.reserved(name)}, at.name, ms(placementLife))
	load, settle := t.loadCalls([]*Worker{w})
	if t.store.cluster == nil { // one connection runs them in their order
		t.store.doAll(p.op, append([]*call{c}, load...))
	} else {
		t.store.doAll(p.op, []*call{c})
		t.store.doAll(p.op, load)
	}
	for _, c := range append(load, c) {
		if c.err != nil {
			return 0, false, c.err
		}
	}
	if c.reply.int(0) != codeOK {
		return 0, false, nil
	}
	settle()
	others = int(c.reply.int(1))
	w.Placed += others
	w.lastSelected = parseMs(c.reply.str(2))
	return others, true, nil
}

// unreserve ends reservations.
func (t *Tracker) unreserve(op string, places []*placement) {
	calls := make([]*call, len(places))
	for i, p := range places {
		shard, _ := t.store.workerShard(p.worker.ID)
		k, name := t.store.keys[shard], taskName(p.worker.Scope, p.worker.ID)
		calls[i] = newCall(shard, t.store.scripts.Get("worker_reserve"), []string{k.worker(name), k.reserved(name), k.clock, k.workerBeats},
			p.name, -1, ms(placementLife), 0, "", "")
	}
	t.store.doAll(op, calls)
}

// placeBatch chooses workers for the placed tasks of a batch; those that find none fail. Call the result when the
// tasks stand in their queues. Tasks whose places others may wait for, or would not be kept for much longer, it creates.
func (t *Tracker) placeBatch(batch []*creation) (givenBack func()) {
	var places []*placement
	var placed, failed []*creation
	var since time.Time // the oldest reservation
	mine := map[string]int{}
	giveBack := func() {
		if len(places) > 0 {
			given := places
			t.tidy(func(t *Tracker) { t.unreserve("create", given) })
		}
	}
	settle := func() {
		t.create(placed)
		giveBack()
		placed, places = nil, nil
		clear(mine)
	}
	type ours struct {
		pool
		by *placer
	}
	pools := map[string]*ours{} // candidates are read once for all that ask the same
	for _, c := range batch {
		if c.Placement == "" || c.err != nil || c.done || !c.NotBefore.IsZero() {
			continue
		}
		s := placementSelector(c.Scope, c.Queue, c.Type, c.Runtime, c.WorkerLabels, c.Placement)
		key := s.key()
		p := pools[key]
		if p == nil {
			p = &ours{by: &placer{t: t, op: "create", patience: placementLife, mine: mine, settle: settle}}
			p.left, p.found, p.err = t.candidates("create", s)
			pools[key] = p
		}
		if c.err = p.err; c.err != nil {
			failed = append(failed, c)
			continue
		}
		if len(places) > 0 && time.Since(since) > placementLife/4 {
			settle()
		}
		at, err := p.by.place(s, slices.Clone(p.left), p.found.clone())
		if c.err = err; err != nil {
			failed = append(failed, c)
			continue
		}
		if len(places) == 0 {
			since = time.Now()
		}
		c.WorkerID = at.worker.ID
		places, placed = append(places, at), append(placed, c)
	}
	t.forgiveExisting(failed)
	return giveBack
}

// forgiveExisting lets creations go on that found no worker and whose task is there already: what they are told is that,
// or, of a repeat, what the first one was told.
func (t *Tracker) forgiveExisting(failed []*creation) {
	refs := make([]*taskRef, len(failed))
	for i, c := range failed {
		refs[i] = t.ref(c.Scope, c.TaskID)
	}
	calls, resolve := t.nameCalls(refs)
	t.store.doAll("create", calls)
	resolve()
	for i, c := range failed {
		if refs[i].exists {
			c.err = nil
		}
	}
}

func placementSelector(scope Scope, queue, kind, runtime string, labels map[string]string, strategy string) *Selector {
	return &Selector{Scope: scope, Queue: queue, Type: kind, Runtime: runtime, Labels: labels, Strategy: strategy}
}

func (s *Selector) key() string {
	b, _ := json.Marshal(s) // strings and a map, whose keys are sorted
	return string(b)
}

// unpinShard frees the placed tasks that wait in a shard for a worker which will not claim them.
func (t *Tracker) unpinShard(op string, shard int, worker *workerRef, queue string) error {
	if queue == "" {
		return nil // its record is gone, and with it the name of what it was given
	}
	k := t.store.keys[shard]
	after := ""
	for {
		listed, err := t.store.do(op, newCall(shard, t.store.scripts.Get("pinned"), []string{k.ready},
			worker.scope.String()+"/"+queue+"/"+worker.id, after, takeLimit))
		if err != nil || len(listed) == 0 {
			return err
		}
		keys := append(make([]string, 0, len(k.fixed)+5*len(listed)), k.fixed...)
		var args []any
		for _, text := range listed.strings() {
			after = text
			if e, ok := parseReady(text, shard); ok {
				keys = k.ofTask(keys, e.ref.scope, e.ref.id, e.ref.run, e.ref.timeoutMs)
				args = append(args, e.ref.scope.String(), e.ref.id, worker.id)
			}
		}
		if _, err := t.store.do(op, newCall(shard, t.store.scripts.Get("unpin"), keys, args...)); err != nil {
			return err
		}
	}
}

// unpinAll frees the placed tasks that wait for a worker in any shard.
func (t *Tracker) unpinAll(op string, worker *workerRef, queue string) error {
	for shard := range t.store.keys {
		if err := t.unpinShard(op, shard, worker, queue); err != nil {
			return err
		}
	}
	return nil
}
