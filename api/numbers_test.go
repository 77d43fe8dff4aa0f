package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Whatever tasks and workers have been through, each number that the dashboard and `lubdub status` link to a list is how many entries that
// list has.
func TestNumbersAreWhatTheirListsHave(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		rounds := 5
		if testenv.All() && l.store.Kind == "redis" { // miniredis is slow
			rounds = 15
		}
		f := &fleet{live: l, rng: rand.New(rand.NewPCG(1, 2)), held: map[string][]v1.TaskEnvelope{}}
		for range rounds {
			for range 15 {
				f.act()
			}
			for range f.rng.IntN(3) {
				f.beat()
				l.pass(5 * time.Second)
				l.sweep()
			}
			f.check()
		}
		for _, seen := range []string{"QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "OFFLINE", "DRAINING", "LATE",
			"backoff", "recentlyLost"} {
			if rounds == 15 && f.seen[seen] == 0 {
				t.Errorf("nothing was %s: %v", seen, f.seen)
			}
		}
	}, counts)
}

// fleet are workers and tasks to which anything may happen.
type fleet struct {
	*live
	rng     *rand.Rand
	workers []*v1.RegisterWorkerResponse // the last of each name
	silent  []bool                       // no more heartbeats of the worker
	held    map[string][]v1.TaskEnvelope // by worker, as it knows
	tasks   int
	seen    map[string]int // what was counted, and how often
}

func (f *fleet) pick(of ...string) string { return of[f.rng.IntN(len(of))] }

// post sends a request, which may be refused by then.
func (f *fleet) post(path, token, body string, into any) {
	f.t.Helper()
	a := f.do("POST", path, token, body)
	switch {
	case a.status >= fasthttp.StatusInternalServerError || a.status == fasthttp.StatusBadRequest:
		f.t.Fatalf("POST %s %s: %d %s", path, body, a.status, a.body)
	case a.status < fasthttp.StatusMultipleChoices && into != nil:
		a.into(into)
	}
}

// act does something at random.
func (f *fleet) act() {
	f.t.Helper()
	queue, host := f.pick("mail", "print"), f.pick("host-1", "host-2", "host-3")
	dispatcher, operator := f.control(roleDispatcher), f.control(roleOperator)
	for len(f.workers) < 4 || f.rng.IntN(8) == 0 {
		f.workers = append(f.workers, f.register(fmt.Sprintf(`{"queue":%q,"types":["x","y"],"machineId":%q,"maxConcurrent":5}`, queue, host)))
		f.silent = append(f.silent, false)
	}
	i := len(f.workers) - 1 - f.rng.IntN(4) // the others have mostly ended
	w := f.workers[i]
	switch f.rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		f.tasks++
		fields := fmt.Sprintf(`"taskId":"t%d","queue":%q`, f.tasks, queue)
		switch f.rng.IntN(6) {
		case 0:
			fields = fmt.Sprintf(`"taskId":"t%d"`, f.tasks) // pushed
		case 1:
			fields += fmt.Sprintf(`,"type":"x","notBefore":%q`, f.now().Add(time.Minute).UTC().Format(time.RFC3339))
		case 2:
			fields = fmt.Sprintf(`"taskId":"t%d","queue":%q,"type":"z"`, f.tasks, queue)
		case 3:
			fields += fmt.Sprintf(`,"type":"y","runId":"run_1","workerId":%q`, w.WorkerID)
		case 4:
			fields += `,"type":"y","runId":"run_1","retry":{"maxAttempts":1,"maxLosses":0}`
		default:
			fields += `,"type":"x","retry":{"maxAttempts":3,"maxLosses":1,"initialBackoffMs":20000}`
		}
		f.post("/v1/tasks", dispatcher, "{"+fields+"}", nil)
	case 5, 6, 7:
		var got v1.ClaimResponse
		for _, q := range []string{"mail", "print"} {
			f.post("/v1/queues/"+q+"/claim", w.WorkerToken, `{"max":3}`, &got)
			f.held[w.WorkerID] = append(f.held[w.WorkerID], got.Tasks...)
			got = v1.ClaimResponse{}
		}
	case 8, 9, 10:
		held := f.held[w.WorkerID]
		if len(held) == 0 {
			return
		}
		e, of := &held[0], `{"attempt":%d}`
		f.post("/v1/tasks/"+e.TaskID+"/started", e.TaskToken, fmt.Sprintf(of, e.Attempt), nil)
		if f.rng.IntN(3) == 0 {
			return
		}
		f.held[w.WorkerID] = held[1:]
		of = f.pick(`{"attempt":%d,"outcome":"SUCCEEDED"}`, `{"attempt":%d,"outcome":"FAILED","error":{"category":"USER_CODE","message":"m"}}`,
			`{"attempt":%d,"outcome":"FAILED","error":{"category":"DATA_QUALITY","message":"m"}}`)
		f.post("/v1/tasks/"+e.TaskID+"/completed", e.TaskToken, fmt.Sprintf(of, e.Attempt), nil)
	case 11:
		f.post(fmt.Sprintf("/v1/tasks/t%d/cancel", 1+f.rng.IntN(max(1, f.tasks))), operator, f.pick(`{}`, `{"gracePeriodMs":0}`), nil)
	case 12:
		act := f.pick("drain", "resume", "resume", "cordon", "uncordon", "uncordon", "offline")
		f.post("/v1/workers/"+w.WorkerID+"/"+act, operator, `{}`, nil)
	case 13:
		f.post("/v1/machines/"+host+"/"+f.pick("drain", "resume", "resume", "resume"), operator, `{}`, nil)
	case 14:
		f.post("/v1/queues/"+queue+"/"+f.pick("pause", "resume", "resume"), operator, `{}`, nil)
	case 15:
		f.silent[i] = true // its process is killed
	}
}

// beat sends a heartbeat of each worker whose process lives.
func (f *fleet) beat() {
	f.t.Helper()
	for i, w := range f.workers {
		if !f.silent[i] {
			f.post("/v1/workers/me/heartbeat", w.WorkerToken, `{}`, nil)
		}
	}
}

// length returns how many entries a list has, page by page, and its totalCount.
func (f *fleet) length(kind, query string) (n int) {
	f.t.Helper()
	for next := ""; ; {
		var page map[string]json.RawMessage
		f.do("GET", "/v1/"+kind+"?pageSize=7&"+query+next, f.control(roleViewer), "").want(200).into(&page)
		var entries []json.RawMessage
		var total *int
		var token string
		for name, to := range map[string]any{kind: &entries, "totalCount": &total, "nextPageToken": &token} {
			if page[name] != nil {
				if err := json.Unmarshal(page[name], to); err != nil {
					f.t.Fatal(err)
				}
			}
		}
		if n += len(entries); token == "" {
			if total != nil && *total != n {
				f.t.Errorf("%s?%s: totalCount %d, and %d are listed", kind, query, *total, n)
			}
			return n
		}
		next = "&pageToken=" + url.QueryEscape(token)
	}
}

// same compares a number with the length of the list that it links to.
func (f *fleet) same(what string, number int, kind, query string) {
	f.t.Helper()
	if listed := f.length(kind, query); listed != number {
		f.t.Errorf("%s is %d, and %s?%s has %d", what, number, kind, query, listed)
	}
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[what] += number
}

// check compares all numbers.
func (f *fleet) check() {
	f.t.Helper()
	f.sweep()
	f.wait()
	viewer := f.control(roleViewer)
	var stats v1.Stats
	f.do("GET", "/v1/stats", viewer, "").want(200).into(&stats)
	for _, state := range v1.States {
		f.same(string(state), stats.Tasks[string(state)], "tasks", "state="+string(state))
	}
	for word, n := range map[string]int{"FRESH": stats.Workers.Fresh, "LATE": stats.Workers.Late, "LOST": stats.Workers.Lost} {
		f.same(word, n, "workers", "status=ONLINE,DRAINING&liveness="+word)
	}
	f.statuses("", stats.Workers.Online, stats.Workers.Draining, stats.Workers.Offline, "workers", "")
	f.statuses("machines ", stats.Machines.Online, stats.Machines.Draining, stats.Machines.Offline, "machines", "")
	var queues v1.QueueList
	f.do("GET", "/v1/queues", viewer, "").want(200).into(&queues)
	for _, listed := range queues.Queues {
		var q v1.Queue
		f.do("GET", "/v1/queues/"+listed.Queue, viewer, "").want(200).into(&q)
		for _, q := range []v1.Queue{q, listed} {
			f.same("depth", q.Depth, "tasks", "claimable=true&queue="+q.Queue)
			f.same("running", q.Running, "tasks", "state=DISPATCHED,RUNNING&queue="+q.Queue)
			f.statuses("queue ", q.Workers.Online, q.Workers.Draining, q.Workers.Offline, "workers", "&queue="+q.Queue)
			for _, kind := range q.Types {
				if kind.Type != nil {
					f.same("depth of a type", kind.Depth, "tasks", "claimable=true&queue="+q.Queue+"&type="+*kind.Type)
				}
			}
		}
		all := f.length("tasks", "state=QUEUED&queue="+listed.Queue)
		f.same("backoff", all-listed.Depth, "tasks", "claimable=false&queue="+listed.Queue)
	}
	var workers v1.WorkerList
	f.do("GET", "/v1/workers", viewer, "").want(200).into(&workers)
	for _, listed := range workers.Workers {
		w := f.workerNow(listed.WorkerID)
		for _, n := range []int{w.HeldCount, listed.HeldCount} {
			f.same("held", n, "tasks", "state=DISPATCHED,RUNNING&workerId="+w.WorkerID)
		}
	}
	var machines v1.MachineList
	f.do("GET", "/v1/machines", viewer, "").want(200).into(&machines)
	for _, m := range machines.Machines {
		f.statuses("machine ", m.Workers.Online, m.Workers.Draining, m.Workers.Offline, "workers", "&machineId="+m.MachineID)
	}
	if a := f.do("GET", "/v1/runs/run_1", viewer, ""); a.status == fasthttp.StatusOK {
		var run v1.Run
		a.into(&run)
		for state, n := range run.Counts {
			f.same("run "+string(state), n, "tasks", "runId=run_1&state="+string(state))
		}
	}
	f.losses(workers.Workers)
}

func (f *fleet) statuses(what string, online, draining, offline int, kind, query string) {
	f.t.Helper()
	for status, n := range map[model.WorkerStatus]int{model.Online: online, model.Draining: draining, model.Offline: offline} {
		f.same(what+string(status), n, kind, "status="+string(status)+query)
	}
}

// losses compares what was lost with the verdicts that the page of losses shows, and with the events of them.
func (f *fleet) losses(all []v1.Worker) {
	f.t.Helper()
	viewer := f.control(roleViewer)
	var s v1.System
	f.do("GET", "/v1/system", viewer, "").want(200).into(&s)
	lost := 0
	for _, w := range all {
		if w.EndReason != nil && slices.Contains([]string{"HEARTBEAT_TIMEOUT", "SUPERSEDED", "FORCED_OFFLINE"}, *w.EndReason) {
			lost++
		}
	}
	if s.RecentlyLostTotal != lost || len(s.RecentlyLost) != lost {
		f.t.Errorf("recentlyLostTotal is %d, recentlyLost has %d, and %d workers are lost", s.RecentlyLostTotal, len(s.RecentlyLost), lost)
	}
	f.seen["recentlyLost"] += lost
	var verdicts v1.VerdictCounts
	f.do("GET", "/v1/stats/verdicts?by=workerId,reason", viewer, "").want(200).into(&verdicts)
	sum := 0
	for _, g := range verdicts.Groups {
		sum += g.Count
	}
	if sum != verdicts.Total {
		f.t.Errorf("%d attempts were lost, and their groups have %d", verdicts.Total, sum)
	}
	for _, w := range s.RecentlyLost {
		attempts := 0
		for _, g := range verdicts.Groups {
			if g.WorkerID != nil && *g.WorkerID == w.WorkerID && *g.Reason == "WORKER_LOST" {
				attempts += g.Count
			}
		}
		if w.Attempts != attempts || w.Attempts != w.Requeued+w.Failed+w.Exhausted {
			f.t.Errorf("%s lost %d attempts (%d requeued, %d failed, %d out of retries), and %d verdicts are of it", w.WorkerID, w.Attempts,
				w.Requeued, w.Failed, w.Exhausted, attempts)
		}
	}
}
