package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// register registers a worker of acme/prod.
func (l *live) register(body string) *v1.RegisterWorkerResponse {
	l.t.Helper()
	var r v1.RegisterWorkerResponse
	l.do("POST", "/v1/workers", l.control(roleEnroll), body).want(201).into(&r)
	return &r
}

// mine makes a call of a worker's own.
func (l *live) mine(w *v1.RegisterWorkerResponse, call, body string) *answer {
	l.t.Helper()
	return l.do("POST", "/v1/workers/"+w.WorkerID+"/"+call, w.WorkerToken, body)
}

func (l *live) workerNow(id string) *v1.Worker {
	l.t.Helper()
	var w v1.Worker
	l.do("GET", "/v1/workers/"+id, l.control(roleViewer), "").want(200).into(&w)
	return &w
}

const mailer = `{"queue":"default","types":["send_email"],"hostname":"host-7","pid":4711,"name":"mailer-1","version":"1.2.3",` +
	`"runtimes":["python"],"maxConcurrent":10,"labels":{"region":"us-east-1"}}`

func TestContractWorker(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		if w.HeartbeatIntervalMs != 10000 || w.HeartbeatTimeoutMs != 30000 || w.MachineID != "host-7" || !w.TokenExpiresAt.After(l.now()) {
			t.Fatalf("%+v", w)
		}
		l.mine(w, "heartbeat", `{"activeCount":2,"seq":1,"completedDelta":5,"failedDelta":1}`).want(200).
			contains(`{"accepted":true,"shouldDrain":false,"cancelTasks":[],"lostTasks":[],"heartbeatIntervalMs":10000,"heartbeatTimeoutMs":30000}`)
		l.mine(w, "heartbeat", "").want(200)
		l.pass(812 * time.Millisecond)
		l.do("GET", "/v1/workers/"+w.WorkerID, l.control(roleViewer), "").want(200).contains(`{"name":"mailer-1","tenantId":"acme",
			"workspaceId":"prod","queue":"default",
			"machineId":"host-7","hostname":"host-7","pid":4711,"version":"1.2.3","types":["send_email"],"runtimes":["python"],
			"labels":{"region":"us-east-1"},
			"status":"ONLINE","statusReason":null,"liveness":"FRESH","schedulable":true,"unschedulableReasons":[],"maxConcurrent":10,
			"activeCount":2,"heldCount":0,
			"totalCompleted":5,"totalFailed":1,"lastHeartbeatAgeMs":812,"deregisteredAt":null,"drainDeadline":null,"uptimePct24h":100,
			"staleCount24h":0,"flapping":false,
			"heartbeatIntervalMs":10000,"heartbeatTimeoutMs":30000}`)
		l.do("GET", "/v1/machines/host-7", l.control(roleViewer),
			"").want(200).contains(`{"machineId":"host-7","status":"ONLINE","workers":{"online":1,"draining":0,"offline":0},"flapping":false,` +
			`"staleCount24h":0}`)
		l.do("GET", "/v1/machines", l.control(roleViewer), "").want(200).contains(`{"totalCount":1}`)

		l.mine(w, "drain", `{"reason":"deploy","deadlineMs":60000}`).want(200).contains(`{"status":"DRAINING","statusReason":"deploy"}`)
		l.mine(w, "heartbeat", "").want(200).contains(`{"shouldDrain":true}`)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/resume", l.control(roleOperator),
			"").want(200).contains(`{"status":"ONLINE","drainDeadline":null}`)
		l.mine(w, "deregister", "").want(200).contains(`{"status":"OFFLINE","statusReason":"DEREGISTERED"}`)
		e := l.mine(w, "heartbeat", "").refused(410, v1.CodeWorkerOffline)
		if e.Reason != "DEREGISTERED" {
			t.Errorf("%+v", e)
		}
		l.mine(w, "drain", "").refused(410, v1.CodeWorkerOffline)
		l.do("GET", "/v1/machines/host-7", l.control(roleViewer), "").want(200).contains(`{"status":"OFFLINE"}`)

		other := l.register(mailer)
		l.mine(other, "deregister", `{"drain":true}`).want(200).contains(`{"status":"DRAINING"}`)
		l.sweep()
		l.do("POST", "/v1/queues/default/claim", other.WorkerToken, "").refused(409, v1.CodeWorkerDraining)
		l.pass(time.Second)
		l.sweep()
		if w := l.workerNow(other.WorkerID); w.Status != v1.Offline || *w.StatusReason != "DRAINED" {
			t.Errorf("%+v", w)
		}
	})
}

// A worker's token is renewed by its beats, and opens its own calls only.
func TestContractWorkerTokens(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w, other := l.register(mailer), l.register(`{"queue":"default","types":["x"]}`)
		for _, path := range []string{"heartbeat", "drain", "deregister"} {
			l.do("POST", "/v1/workers/"+w.WorkerID+"/"+path, other.WorkerToken, "").refused(403, v1.CodeForbidden)
			l.do("POST", "/v1/workers/"+w.WorkerID+"/"+path, "", "").refused(401, v1.CodeUnauthorized)
			l.do("POST", "/v1/workers/"+w.WorkerID+"/"+path, l.control(roleEnroll), "").refused(403, v1.CodeForbidden)
		}
		l.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat", l.control(roleAdmin), "").refused(403, v1.CodeForbidden)
		for _, path := range []string{"resume", "offline"} {
			l.do("POST", "/v1/workers/"+w.WorkerID+"/"+path, w.WorkerToken, "").refused(403, v1.CodeForbidden)
		}
		l.do("GET", "/v1/workers/"+w.WorkerID, w.WorkerToken, "").refused(403, v1.CodeForbidden)
		l.do("GET", "/v1/workers", l.control(roleEnroll), "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/workers", l.control(roleDispatcher), mailer).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/workers", w.WorkerToken, mailer).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat?tenantId=other", w.WorkerToken, "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", l.controlFor(roleOperator, "other", "prod"), "").refused(404, v1.CodeWorkerNotFound)

		tied, _, err := l.keys.MintControl(token.Control{Role: roleEnroll, Tenant: "acme", Workspace: "prod", Queue: "reports", TTL: time.Hour},
			l.now())
		if err != nil {
			t.Fatal(err)
		}
		l.do("POST", "/v1/workers", tied, mailer).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/workers", tied, `{"queue":"reports","types":["x"]}`).want(201)

		begin := l.now()
		for range 3 {
			l.store.Clock.Advance(15 * time.Minute)
			l.pass(0)
			var a v1.WorkerHeartbeatResponse
			l.mine(w, "heartbeat", "").want(200).into(&a)
			if renewed := a.WorkerToken != ""; renewed != (l.now().Sub(begin) > 40*time.Minute) {
				t.Fatalf("renewed: %v", renewed)
			}
			if a.WorkerToken != "" {
				w.WorkerToken = a.WorkerToken
			}
		}
		l.store.Clock.Advance(50 * time.Minute)
		l.pass(0)
		l.mine(w, "heartbeat", "").want(200)
		l.do("POST", "/v1/workers/"+other.WorkerID+"/heartbeat", other.WorkerToken, "").refused(401, v1.CodeUnauthorized)
	})
}

func TestContractWorkerBadInput(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		before := l.store.Dump(t)
		for _, c := range []struct{ body, field string }{
			{`{"queue":"default","types":[]}`, "types"},
			{`{"queue":"default"}`, "types"},
			{`{"queue":"default","types":["a b"]}`, "types[0]"},
			{`{"queue":"default","types":["a",""]}`, "types[1]"},
			{`{"queue":"default","types":["a",5]}`, "types[1]"},
			{`{"queue":"default","types":["a"],"runtimes":["a","b","-"]}`, "runtimes[2]"},
			{`{"queue":"default","types":["x"],"labels":{"a":"b\u0000"}}`, "labels.a"},
			{`{"types":["x"]}`, "queue"},
			{`{"queue":"a/b","types":["x"]}`, "queue"},
			{`{"queue":"q","types":["x"],"labels":{"a b":"c"}}`, "labels"},
			{`{"queue":"q","types":["x"],"labels":{"a":"` + strings.Repeat("x", 257) + `"}}`, "labels.a"},
			{`{"queue":"q","types":["x"],"labels":{"a":1}}`, "labels.a"},
			{`{"queue":"q","types":["x"],"maxConcurrent":-1}`, "maxConcurrent"},
			{`{"queue":"q","types":["x"],"pid":-1}`, "pid"},
			{`{"queue":"q","types":["x"],"hostname":"a\nb"}`, "hostname"},
			{`{"queue":"q","types":["x"],"machineId":""}`, "machineId"},
			{`{"queue":"q","types":["x"],"probeUrl":"ftp://x"}`, "probeUrl"},
			{`{"queue":"q","types":["x"],"probeUrl":"http://user@host/"}`, "probeUrl"},
			{`{"queue":"q","types":["x"],"name":"a\nb"}`, "name"},
			{`{"queue":"q","types":["x"],"size":1}`, "size"},
		} {
			a := l.do("POST", "/v1/workers", l.control(roleEnroll), c.body).want(400)
			var e v1.Error
			if a.into(&e); e.Field != c.field || !strings.Contains(e.Message, c.field) {
				t.Errorf("%s: field %q, want %q, and in the message: %s", c.body, e.Field, c.field, a.body)
			}
			if c.field == "queue" && !strings.Contains(c.body, "queue") && (e.Error != v1.CodeInvalidRequest ||
				!strings.HasPrefix(e.Message, "queue is required")) {
				t.Errorf("%s: %s", c.body, a.body)
			}
		}
		for _, c := range []struct{ body, field string }{
			{`{"completedDelta":-1,"seq":1}`, "completedDelta"},
			{`{"failedDelta":-1,"seq":1}`, "failedDelta"},
			{`{"completedDelta":1}`, "seq"},
			{`{"failedDelta":0}`, "seq"},
			{`{"seq":-1}`, "seq"},
			{`{"activeCount":-1}`, "activeCount"},
			{`{"activeCount":"2"}`, "activeCount"},
		} {
			var e v1.Error
			if l.mine(w, "heartbeat", c.body).want(400).into(&e); e.Field != c.field {
				t.Errorf("%s: field %q, want %q", c.body, e.Field, c.field)
			}
		}
		for _, id := range []string{"nosuch", "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"} {
			l.do("GET", "/v1/workers/"+id, l.control(roleViewer), "").refused(404, v1.CodeWorkerNotFound)
			for _, call := range []string{"drain", "resume", "offline", "deregister"} {
				l.do("POST", "/v1/workers/"+id+"/"+call, l.control(roleOperator), "").refused(404, v1.CodeWorkerNotFound)
			}
		}
		l.do("GET", "/v1/workers/a%20b", l.control(roleViewer), "").refused(400, v1.CodeInvalidID)
		l.do("GET", "/v1/machines/none", l.control(roleViewer), "").refused(404, v1.CodeMachineNotFound)
		for _, query := range []string{"status=SLEEPING", "liveness=x", "schedulable=maybe", "queue=a%20b", "label=x", "size=3", "pageToken=x",
			"pageSize=x"} {
			l.do("GET", "/v1/workers?"+query, l.control(roleViewer), "").want(400)
		}
		op := l.control(roleOperator)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", op, `{"deadlineMs":0}`).refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", op, `{"deadline":1}`).refused(400, v1.CodeUnknownField)
		l.do("POST", "/v1/workers:drain", op, `{"selector":{}}`).refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/workers:drain", op, `{}`).refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/workers:drain", op, `{"selector":{"queue":"nosuch"}}`).refused(404, v1.CodeNoWorkersMatch)
		l.do("POST", "/v1/workers:drain", op, `{"selector":{"queue":"nosuch"},"dryRun":true}`).want(200).contains(`{"matched":0,"draining":0,` +
			`"dryRun":true,"workerIds":[]}`)
		for selector, field := range map[string]string{
			`{"labels":{"a b":"c"}}`: "selector.labels", `{"labels":{"a":"` + strings.Repeat("x", 257) + `"}}`: "selector.labels.a",
			`{"queue":"a b"}`:    "selector.queue",
			`{"version":"a\nb"}`: "selector.version",
		} {
			var e v1.Error
			if l.do("POST", "/v1/workers:drain", op, `{"selector":`+selector+`}`).want(400).into(&e); e.Field != field {
				t.Errorf("%s: field %q, want %q", selector, e.Field, field)
			}
		}
		l.do("POST", "/v1/workers:select", op, `{"strategy":"best"}`).refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/workers:select", op, `{"queue":"a b"}`).refused(400, v1.CodeInvalidID)
		if after := l.store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("what was refused changed the store")
		}
	})
}

func TestContractWorkerLists(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		var ids []string
		for i := range 5 {
			ids = append(ids, l.register(fmt.Sprintf(`{"queue":"q%d","types":["x","y%d"],"runtimes":["r%d"],"machineId":"m%d","labels":{"n":"%d"},`+
				`"maxConcurrent":1}`, i%2, i, i%2, i%3, i)).WorkerID)
		}
		l.do("POST", "/v1/workers/"+ids[4]+"/offline", l.control(roleOperator),
			"").want(200).contains(`{"status":"OFFLINE","statusReason":"FORCED_OFFLINE"}`)
		l.do("POST", "/v1/workers/"+ids[3]+"/drain", l.control(roleOperator), "").want(200)
		list := func(query string) (got []string, total int) {
			t.Helper()
			next := ""
			for {
				var page v1.WorkerList
				l.do("GET", "/v1/workers?pageSize=2&"+query+next, l.control(roleViewer), "").want(200).into(&page)
				for _, w := range page.Workers {
					got = append(got, w.WorkerID)
				}
				if page.NextPageToken == "" {
					return got, page.TotalCount
				}
				if len(page.Workers) != 2 {
					t.Fatalf("a short page with a next one: %+v", page)
				}
				next = "&pageToken=" + page.NextPageToken
			}
		}
		for query, want := range map[string][]string{
			"": ids, "queue=q0": {ids[0], ids[2], ids[4]}, "status=ONLINE": ids[:3], "status=OFFLINE": ids[4:], "type=x": ids, "type=y2": {ids[2]},
			"runtime=r1": {ids[1], ids[3]}, "machineId=m0": {ids[0], ids[3]}, "label=n%3D1": {ids[1]}, "liveness=FRESH": ids, "liveness=LATE": nil,
			"schedulable=true": ids[:3], "schedulable=false": ids[3:], "queue=q0&status=ONLINE&type=x": {ids[0], ids[2]}, "queue=nosuch": nil,
		} {
			got, total := list(query)
			if fmt.Sprint(got) != fmt.Sprint(want) || total != len(want) {
				t.Errorf("%q: %v (%d), want %v", query, got, total, want)
			}
		}
		var page v1.WorkerList
		l.do("GET", "/v1/workers?pageSize=2", l.control(roleViewer), "").want(200).into(&page)
		l.do("GET", "/v1/workers?queue=q0&pageToken="+page.NextPageToken, l.control(roleViewer), "").refused(400, v1.CodeInvalidRequest)
		var machines v1.MachineList
		l.do("GET", "/v1/machines?pageSize=2", l.control(roleViewer), "").want(200).into(&machines)
		if len(machines.Machines) != 2 || machines.TotalCount != 3 || machines.Machines[0].MachineID != "m0" {
			t.Fatalf("%+v", machines)
		}
		var rest v1.MachineList
		l.do("GET", "/v1/machines?pageToken="+machines.NextPageToken, l.control(roleViewer), "").want(200).into(&rest)
		if len(rest.Machines) != 1 || rest.Machines[0].MachineID != "m2" || rest.NextPageToken != "" {
			t.Fatalf("%+v", rest)
		}
		l.do("POST", "/v1/machines/m1/drain", l.control(roleOperator),
			`{"reason":"maintenance"}`).want(200).contains(`{"matched":1,"draining":1,"dryRun":false}`)
		l.do("POST", "/v1/workers:drain", l.control(roleOperator),
			`{"selector":{"labels":{"n":"0"}},"dryRun":true}`).want(200).contains(`{"matched":1,"draining":0,"dryRun":true}`)
	})
}

func TestContractSweep(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/system:sweep", l.controlFor(roleOperator, "*", "*"), "").refused(403, v1.CodeForbidden)
		admin := l.control(roleAdmin)
		l.do("POST", "/v1/system:sweep", admin, "").want(200)
		l.do("POST", "/v1/system:sweep?tenantId=.", admin, "").refused(400, v1.CodeInvalidID)
		l.do("POST", "/v1/system:sweep?tenantId=other", admin, "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/system:sweep?workspaceId=other", admin, "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/system:sweep", l.controlFor(roleAdmin, "*", "*"), "").want(200) // it is about every tenant
		l.do("POST", "/v1/system:sweep?tenantId=acme", l.controlFor(roleAdmin, "*", "*"), "").refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/system:sweep?tenantId=acme&workspaceId=prod", l.controlFor(roleAdmin, "*", "*"), "{}").want(200)
		l.do("POST", "/v1/system:sweep", admin, `{"now":true}`).refused(400, v1.CodeUnknownField)
		l.do("POST", "/v1/system:sweep", admin, `{}`, "Content-Type", "text/plain").want(415)
		l.do("POST", "/v1/workers", l.controlFor(roleEnroll, "other", "prod"), `{"queue":"q","types":["x"],"machineId":"theirs"}`).want(201)
		l.pass(30 * time.Second)
		var r v1.SweepResponse
		l.do("POST", "/v1/system:sweep", admin, "").want(200).into(&r)
		s := r.Results.StaleWorkers
		if !r.Success || !s.Success || s.MarkedOfflineCount != 2 || s.DeletedCount != 0 || fmt.Sprint(s.AffectedMachineIDs) != "[host-7]" {
			t.Fatalf("%+v", r)
		}
		if got := l.workerNow(w.WorkerID); got.Status != v1.Offline || got.StaleCount24h != 1 {
			t.Fatalf("%+v", got)
		}
	})
}

func TestContractSelectAndPlace(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer, dispatcher := l.control(roleViewer), l.control(roleDispatcher)
		l.do("POST", "/v1/workers:select", viewer, `{"queue":"default"}`).want(409).
			contains(`{"error":"no_matching_workers","considered":0,"rejected":{"runtime":0,"type":0,"labels":0,"status":0,"stale":0,"full":0}}`)
		w := l.register(strings.Replace(mailer, `"maxConcurrent":10`, `"maxConcurrent":1`, 1))
		var s v1.SelectWorkerResponse
		l.do("POST", "/v1/workers:select", viewer,
			`{"queue":"default","type":"send_email","runtime":"python","labels":{"region":"us-east-1"},"strategy":"random"}`).want(200).into(&s)
		if s.Worker.WorkerID != w.WorkerID || s.Considered != 1 {
			t.Fatalf("%+v", s)
		}
		l.do("POST", "/v1/workers:select", viewer, "").want(200)
		l.do("POST", "/v1/workers:select", viewer,
			`{"runtime":"node"}`).want(409).contains(`{"error":"no_matching_workers","rejected":{"runtime":1,"type":0,"labels":0,"status":0,` +
			`"stale":0,"full":0}}`)

		placed := `{"queue":"default","type":"send_email","placement":{"strategy":"leastLoaded"}}`
		l.do("POST", "/v1/tasks", dispatcher, placed).want(201).contains(`{"state":"QUEUED"}`)
		l.do("POST", "/v1/tasks", dispatcher, placed).want(409).contains(`{"error":"no_capacity","considered":1,"rejected":{"runtime":0,` +
			`"type":0,"labels":0,"status":0,"stale":0,"full":1}}`)
		a := l.do("POST", "/v1/tasks:batch", dispatcher, `{"tasks":[`+placed+`,{"queue":"default"}]}`).want(200)
		if !strings.Contains(a.body, `"status":409,"error":"no_capacity"`) || !strings.Contains(a.body, `"status":201`) {
			t.Errorf("%s", a.body)
		}
		l.do("GET", "/v1/workers?schedulable=true", viewer, "").want(200).contains(`{"totalCount":0}`)

		l.pass(30 * time.Second) // frozen for its timeout
		for range 2 {            // before and after the sweep
			l.do("POST", "/v1/workers:select", viewer, `{"queue":"default"}`).want(409).contains(`{"error":"no_fresh_workers",
				"message":"No workers with fresh heartbeats available","considered":1,
				"rejected":{"runtime":0,"type":0,"labels":0,"status":0,"stale":1,"full":0}}`)
			l.sweep()
		}
	})
}

// Lists of workers take flapping, and every order that the API names; other words are refused with those that there are.
func TestContractListsOfFlappingWorkers(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer := l.control(roleViewer)
		for range 3 {
			l.register(mailer)
			l.pass(30 * time.Second)
			l.sweep()
		}
		w := l.register(mailer)
		for _, sort := range []string{"staleCount24h", "uptimePct24h", "lastHeartbeatAt", "lastHeartbeat"} {
			for _, order := range []string{"asc", "desc"} {
				var list v1.WorkerList
				l.do("GET", "/v1/workers?flapping=true&status=ONLINE&sort="+sort+"&order="+order, viewer, "").want(200).into(&list)
				if len(list.Workers) != 1 || list.Workers[0].WorkerID != w.WorkerID || list.Workers[0].StaleCount24h != 3 {
					t.Errorf("%s %s: %+v", sort, order, list)
				}
			}
		}
		l.do("GET", "/v1/workers?flapping=false", viewer, "").want(200).contains(`{"totalCount":0}`)
		l.do("GET", "/v1/workers?flapping=maybe", viewer, "").refused(400, v1.CodeInvalidRequest)
		l.do("GET", "/v1/workers?sort=uptime", viewer, "").refused(400, v1.CodeInvalidRequest)
	})
}
