package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// tasks are those that a load beats for: their ids and tokens, packed, since there may be a million.
type tasks struct {
	template string // of their creation, from the timeouts on
	prefix   string // of their ids
	tenants  int    // they are spread over so many; 0: the token's own

	mu     sync.Mutex
	tokens []byte   // one after the other, in any order
	at     []uint64 // by task: offset of the token << 16 | its length
	order  []uint32 // a random order of all tasks: loads touch them in this one, so that nothing profits from neighbours
}

// idLength is that of ids such as task_ and a ULID, less the underscore: what the size of a task in Redis is told for.
const idLength = 26

// newTasks are n tasks that do not exist yet, with the heartbeat interval and timeout that they will have.
func newTasks(prefix string, n int, interval, timeout time.Duration, tenants int) *tasks {
	t := &tasks{
		template: fmt.Sprintf(`"heartbeatIntervalMs":%d,"heartbeatTimeoutMs":%d,"tokenTtlSeconds":7200}`, interval.Milliseconds(),
			timeout.Milliseconds()),
		prefix: prefix, tenants: tenants,
		at: make([]uint64, n), order: make([]uint32, n),
	}
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	draws := rand.New(rand.NewPCG(uint64(n), 1))
	draws.Shuffle(n, func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	return t
}

func (t *tasks) len() int { return len(t.order) }

func (t *tasks) token(i uint32) []byte {
	at := t.at[i]
	return t.tokens[at>>16 : at>>16+at&0xffff]
}

func (t *tasks) setToken(i int, token []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[i] = uint64(len(t.tokens))<<16 | uint64(len(token))
	t.tokens = append(t.tokens, token...)
}

// appendID appends a task's id: the prefix, then its number with leading zeros.
func (t *tasks) appendID(dst []byte, i uint32) []byte {
	dst = append(dst, t.prefix...)
	var digits [idLength]byte
	n := strconv.AppendUint(digits[:0], uint64(i), 10)
	for range idLength - len(t.prefix) - len(n) {
		dst = append(dst, '0')
	}
	return append(dst, n...)
}

func (t *tasks) appendScope(dst []byte, i uint32) []byte {
	if t.tenants == 0 {
		return dst
	}
	dst = append(dst, `"tenantId":"tenant-`...)
	dst = strconv.AppendUint(dst, uint64(int(i)%t.tenants), 10)
	return append(dst, `","workspaceId":"bench",`...)
}

// part is connection i's part of the order: no two connections beat for the same task.
func (t *tasks) part(i, n int) []uint32 {
	return t.order[len(t.order)*i/n : len(t.order)*(i+1)/n]
}

// slice is the tasks from one place of the order to another, with the same tokens.
func (t *tasks) slice(from, to int) *tasks {
	return &tasks{template: t.template, prefix: t.prefix, tenants: t.tenants, tokens: t.tokens, at: t.at, order: t.order[from:to]}
}

// walk goes through a share again and again.
type walk struct {
	share []uint32
	at    int
	once  bool
}

func (w *walk) next() (task uint32, ok bool) {
	if w.at == len(w.share) {
		if w.once || len(w.share) == 0 {
			return 0, false
		}
		w.at = 0
	}
	w.at++
	return w.share[w.at-1], true
}

// The head of a request; the Host is required and nobody looks at it.
const (
	headEnd  = " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
	bearer   = "Authorization: Bearer "
	lengthIs = "Content-Length: "
)

// post appends a whole request around a body.
func post(dst []byte, path string, token, body []byte) []byte {
	dst = append(dst, "POST "...)
	dst = append(dst, path...)
	dst = append(dst, headEnd...)
	if token != nil {
		dst = append(dst, bearer...)
		dst = append(dst, token...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, lengthIs...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

// appendGet appends a whole request for one task.
func (t *tasks) appendGet(dst []byte, task uint32, control string) []byte {
	dst = append(dst, "GET /v1/tasks/"...)
	dst = t.appendID(dst, task)
	dst = append(dst, " HTTP/1.1\r\nHost: bench\r\n"+bearer...)
	dst = append(dst, control...)
	return append(dst, "\r\n\r\n"...)
}

// creation is the source that creates all tasks, in batches of up to 1,000.
type creation struct {
	*tasks
	control  []byte // token
	from, to int    // this connection's part
	size     int    // of the batch under way
	batch    []int  // the numbers in it
	body     []byte
}

const batchSize = 1000

// create makes the sources that create every task which has no token yet.
func (t *tasks) create(control string) func(i, n int) load.Source {
	return func(i, n int) load.Source {
		return &creation{tasks: t, control: []byte(control), from: t.len() * i / n, to: t.len() * (i + 1) / n}
	}
}

func (c *creation) Next(dst []byte) []byte {
	c.batch = c.batch[:0]
	for ; c.from < c.to && len(c.batch) < batchSize; c.from++ {
		if c.at[c.from] == 0 {
			c.batch = append(c.batch, c.from)
		}
	}
	if c.size = len(c.batch); c.size == 0 {
		return nil
	}
	c.body = append(c.body[:0], `{"tasks":[`...)
	for place, i := range c.batch {
		if place > 0 {
			c.body = append(c.body, ',')
		}
		c.body = append(c.body, `{"taskId":"`...)
		c.body = c.appendID(c.body, uint32(i))
		c.body = append(c.body, `",`...)
		c.body = c.appendScope(c.body, uint32(i))
		c.body = append(c.body, c.template...)
	}
	c.body = append(c.body, `]}`...)
	return post(dst, "/v1/tasks:batch", c.control, c.body)
}

var tokenField = []byte(`"taskToken":"`)

func (c *creation) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(strconv.Itoa(status), int64(c.size))
		return 0
	}
	if bytes.Count(body, tokenField) != c.size {
		return c.some(body, t)
	}
	for i, rest := 0, body; i < c.size; i++ {
		rest = rest[bytes.Index(rest, tokenField)+len(tokenField):]
		end := bytes.IndexByte(rest, '"')
		c.setToken(c.batch[i], rest[:end])
		rest = rest[end:]
	}
	return c.size
}

// some takes the tokens of a batch of which not all was created.
func (c *creation) some(body []byte, t *load.Tally) (created int) {
	var answer struct {
		Results []struct {
			Status           int
			TaskToken, Error string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Results) != c.size {
		t.Refused("a batch without its results", int64(c.size))
		return 0
	}
	for i, r := range answer.Results {
		if r.TaskToken == "" {
			t.Refused(fmt.Sprintf("%d %s", r.Status, r.Error), 1)
			continue
		}
		c.setToken(c.batch[i], []byte(r.TaskToken))
		created++
	}
	return created
}

// forget leaves out the tasks that were not created.
func (t *tasks) forget() {
	t.order = slices.DeleteFunc(t.order, func(i uint32) bool { return t.at[i] == 0 })
}

// singles beats for one task a request.
type singles struct {
	*tasks
	walk
	path string // behind the task's id
	body []byte
	pct  uint
}

const beatBody = `{"attempt":1,"workerId":"worker-1","progressPct":45,"message":"Processing partition 5 of 10"}`

var pctAt = bytes.Index([]byte(beatBody), []byte("45"))

// beatOneByOne makes the sources of single beats.
func (t *tasks) beatOneByOne(i, n int) load.Source {
	return &singles{tasks: t, walk: walk{share: t.part(i, n)}, path: "/heartbeat", body: []byte(beatBody)}
}

// beatOnce makes the sources of one beat for each task.
func (t *tasks) beatOnce(i, n int) load.Source {
	return &singles{tasks: t, walk: walk{share: t.part(i, n), once: true}, path: "/heartbeat", body: []byte(beatBody)}
}

// start makes the sources that call started once for each task.
func (t *tasks) start(i, n int) load.Source {
	return &singles{tasks: t, walk: walk{share: t.part(i, n), once: true}, path: "/started",
		body: []byte(`{"attempt":1,"workerId":"worker-1"}`)}
}

func (s *singles) Next(dst []byte) []byte {
	task, ok := s.next()
	if !ok {
		return nil
	}
	if len(s.body) == len(beatBody) {
		s.pct = (s.pct + 1) % 90
		s.body[pctAt], s.body[pctAt+1] = byte('1'+s.pct/10), byte('0'+s.pct%10)
	}
	dst = append(dst, "POST /v1/tasks/"...)
	dst = s.appendID(dst, task)
	dst = append(dst, s.path...)
	dst = append(dst, headEnd+bearer...)
	dst = append(dst, s.token(task)...)
	dst = append(dst, "\r\n"+lengthIs...)
	dst = strconv.AppendInt(dst, int64(len(s.body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, s.body...)
}

func (s *singles) Answered(status int, _ []byte, t *load.Tally) int {
	if status == 200 {
		return 1
	}
	t.Refused(strconv.Itoa(status), 1)
	return 0
}

// batches beats for many tasks a request.
type batches struct {
	*tasks
	walk
	items    int
	progress bool
	sent     int
	body     []byte
}

// beatInBatches makes the sources of batches of so many beats. once ends after each task has had one.
func (t *tasks) beatInBatches(items int, progress, once bool) func(i, n int) load.Source {
	return func(i, n int) load.Source {
		return &batches{tasks: t, walk: walk{share: t.part(i, n), once: once}, items: items, progress: progress}
	}
}

func (b *batches) Next(dst []byte) []byte {
	b.sent = 0
	b.body = append(b.body[:0], `{"heartbeats":[`...)
	for b.sent < min(b.items, len(b.share)) {
		task, ok := b.next()
		if !ok {
			break
		}
		if b.sent > 0 {
			b.body = append(b.body, ',')
		}
		b.sent++
		b.body = append(b.body, `{"taskId":"`...)
		b.body = b.appendID(b.body, task)
		b.body = append(b.body, `","taskToken":"`...)
		b.body = append(b.body, b.token(task)...)
		b.body = append(b.body, `","attempt":1`...)
		if b.progress {
			b.body = append(b.body, `,"workerId":"worker-1","progressPct":45,"message":"Processing partition 5 of 10"`...)
		}
		b.body = append(b.body, '}')
	}
	if b.sent == 0 {
		return nil
	}
	b.body = append(b.body, `]}`...)
	return post(dst, "/v1/heartbeats", nil, b.body)
}

var itemOK, anItem = []byte(`"status":200`), []byte(`"status":`)

func (b *batches) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(strconv.Itoa(status), int64(b.sent))
		return 0
	}
	ok := bytes.Count(body, itemOK)
	if ok != b.sent {
		b.refused(body, t, b.sent-ok)
	}
	return ok
}

// refused counts the items that were not acknowledged by their status.
func (b *batches) refused(body []byte, t *load.Tally, missing int) {
	for rest := body; missing > 0; missing-- {
		i := bytes.Index(rest, anItem)
		for i >= 0 && bytes.HasPrefix(rest[i:], itemOK) {
			rest = rest[i+len(itemOK):]
			i = bytes.Index(rest, anItem)
		}
		if i < 0 || len(rest) < i+len(anItem)+3 {
			t.Refused("no result in the batch", int64(missing))
			return
		}
		rest = rest[i+len(anItem):]
		t.Refused(string(rest[:3])+" in a batch", 1)
	}
}
