package requests

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	random "math/rand/v2"
)

// Tasks are the tasks of a load: their ids and tokens, packed, since there may be a million.
type Tasks struct {
	// Queue is the queue in which they wait until a worker claims them; empty: the creation returns a token.
	Queue string
	// Tenants is the number of tenants that they are distributed over; 0: all belong to the control token's own.
	Tenants int

	template string // of their creation, after id and scope
	prefix   string // of their ids

	mu     sync.Mutex
	tokens []byte   // one after the other, in any order
	at     []uint64 // by task: offset of the token << 16 | its length
	order  []uint32 // a random order of all tasks, in which loads process them, so that neighbours in a set are not used one after the other
}

// QuietTimeout is the timeout of tasks that need no heartbeat within a run: the longest allowed.
const QuietTimeout = 24 * time.Hour

// JobType is the type of all tasks in queues.
const JobType = "job"

// New returns n tasks that do not exist yet, with their heartbeat interval and timeout.
func New(n int, interval, timeout time.Duration) *Tasks {
	t := &Tasks{
		template: fmt.Sprintf(`"heartbeatIntervalMs":%d,"heartbeatTimeoutMs":%d,"tokenTtlSeconds":7200}`, interval.Milliseconds(),
			timeout.Milliseconds()),
		prefix: newPrefix(), at: make([]uint64, n), order: make([]uint32, n),
	}
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	random.New(random.NewPCG(uint64(n), 1)).Shuffle(n, func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	return t
}

// NewQuiet returns n tasks that stay alive without heartbeats.
func NewQuiet(n int) *Tasks { return New(n, QuietTimeout/2, QuietTimeout) }

// NewJobs returns n tasks that will wait in a new queue, and depend on the heartbeats of the worker that claims them.
func NewJobs(n int) *Tasks {
	t := New(n, 0, 0)
	t.Queue = t.prefix + "queue"
	t.template = fmt.Sprintf(`"queue":"%s","type":"%s","startTimeoutMs":%d,"tokenTtlSeconds":7200}`, t.Queue, JobType,
		QuietTimeout.Milliseconds())
	return t
}

// newPrefix returns a prefix for this run: a Redis may contain tasks of earlier runs.
func newPrefix() string { return "bench-" + strings.ToLower(rand.Text()[:6]) + "-" }

// Len returns the number of tasks; after the creation, of those that were created.
func (t *Tasks) Len() int { return len(t.order) }

// Slice returns a range of the tasks in their order, with the same tokens.
func (t *Tasks) Slice(from, to int) *Tasks {
	return &Tasks{Queue: t.Queue, Tenants: t.Tenants, template: t.template, prefix: t.prefix, tokens: t.tokens, at: t.at,
		order: t.order[from:to]}
}

// DropRefused removes the tasks that were not created.
func (t *Tasks) DropRefused() {
	t.order = slices.DeleteFunc(t.order, func(i uint32) bool { return t.at[i] == 0 })
}

func (t *Tasks) token(i uint32) []byte {
	at := t.at[i]
	return t.tokens[at>>16 : at>>16+at&0xffff]
}

func (t *Tasks) setToken(i int, token []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[i] = uint64(len(t.tokens))<<16 | uint64(len(token))
	t.tokens = append(t.tokens, token...)
}

// setTokenOf is setToken by a task's id; false: it is not one of these tasks.
func (t *Tasks) setTokenOf(id, token []byte) bool {
	number, ours := bytes.CutPrefix(id, []byte(t.prefix))
	i, err := strconv.Atoi(string(number))
	if !ours || err != nil || i >= len(t.at) {
		return false
	}
	t.setToken(i, token)
	return true
}

// idLength is the length of ids such as task_ and a ULID, without the underscore: the size of a task in Redis is reported for such ids.
const idLength = 26

// appendID appends a task's id: the prefix, then its number with leading zeros.
func (t *Tasks) appendID(dst []byte, i uint32) []byte {
	dst = append(dst, t.prefix...)
	var digits [idLength]byte
	n := strconv.AppendUint(digits[:0], uint64(i), 10)
	for range idLength - len(t.prefix) - len(n) {
		dst = append(dst, '0')
	}
	return append(dst, n...)
}

// Has reports whether an id belongs to one of the tasks.
func (t *Tasks) Has(id string) bool { return strings.HasPrefix(id, t.prefix) }

// walk iterates over one connection's share of tasks, repeatedly.
type walk struct {
	share []uint32
	at    int
	once  bool
}

// walk returns the iterator of connection i: no two connections get the same task.
func (t *Tasks) walk(i, n int, once bool) walk {
	return walk{share: t.order[len(t.order)*i/n : len(t.order)*(i+1)/n], once: once}
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
