package tracker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What names are made of comes back when they are taken apart, and no two attempts have one name.
func FuzzNames(f *testing.F) {
	f.Add("acme", "prod", "task_1", 1, "f3nc")
	f.Add("a", "b", "c.d", 2147483647, "-_-_")
	f.Add("a/b", "#", "1.2#3", 0, "")
	f.Fuzz(func(t *testing.T, tenant, workspace, id string, attempt int, fence string) {
		if !ValidID(tenant) || !ValidID(workspace) || !ValidID(id) || attempt < 1 || strings.ContainsAny(fence, "/#") {
			return
		}
		m := memberName(Scope{tenant, workspace}, id, attempt, fence)
		scope, task, ok := splitName(m)
		number, gotFence, ok2 := splitAttempt(m)
		if !ok || !ok2 || scope != (Scope{tenant, workspace}) || task != id || number != attempt || gotFence != fence {
			t.Fatalf("%q became %+v %q %d %q", m, scope, task, number, gotFence)
		}
	})
}

// Whatever stands in the store, reading it ends in a value or a refusal.
func FuzzStored(f *testing.F) {
	for _, text := range []string{
		"acme/prod/q//mail///1768471200000/task_1/2000/run_1", "acme/prod/q/w/t/r/l/", "wkr_1/acme/prod/task_1#1.f3nc/2000/run_1/mark", "30000\t17\t\"user\"", "1\tw\t5\t\"x\"",
		"3:3:1000:2:60000", "1\t\tw\t1\t2\t3\tZOMBIE\tHEARTBEAT_TIMEOUT", "a/b/c#1.f", "task\tc\t\"reason\"", "", "////////////", "\t\t\t\t",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		splitName(text)
		splitAttempt(text)
		if c, ok := parseClass(text); ok && c.name != text {
			t.Fatalf("class %q became %+v", text, c)
		}
		if e, ok := parseReady(text, 0); ok && (!strings.HasPrefix(text, e.class.name) || e.text != text) {
			t.Fatalf("entry %q became %+v", text, e)
		}
		parseHeld(text, 0)
		parseLetter(text)
		parseCancel(text)
		unpackPolicy(text)
		readHistory(text, &Task{}, time.Hour)
		if r := unpackReport(text); strings.Contains(r.WorkerID, packSep) {
			t.Fatalf("report %q became %+v", text, r)
		}
		(&listener{t: &Tracker{core: &core{}, store: &store{storage: &storage{keys: make([]*shardKeys, 2)}}}}).hear(text)
		(&store{storage: &storage{keys: make([]*shardKeys, 16)}}).workerShard(text)
	})
}

// A report comes back as it was packed.
func FuzzReport(f *testing.F) {
	f.Add(int64(1736935200000), "w-1", "45.5", `"x"`)
	f.Add(int64(0), "", "", "")
	f.Fuzz(func(t *testing.T, ms int64, worker, pct, message string) {
		if ms < 0 || ms > 1<<52 || worker != "" && !ValidID(worker) || strings.ContainsAny(pct+message, "\t") {
			return
		}
		packed := string(AppendReport(nil, ms, []byte(worker), []byte(pct), []byte(message)))
		r := unpackReport(packed)
		if r.WorkerID != worker || string(r.Progress.Pct) != pct || string(r.Progress.Message) != message || ms > 0 && r.ReportedAt.UnixMilli() != ms {
			t.Fatalf("%q became %+v", packed, r)
		}
	})
}

// A URL of Redis never shows its password in what is logged, however it is misspelt.
func FuzzRedisURL(f *testing.F) {
	for _, u := range []string{"redis://u:%s@h:1/0", "redis+cluster://u:%s@a:1,b:2", "redis+sentinel://h:1/main/0?username=u&password=%s", "rediss://:%s@h", "redis://h/0?sentinel_password=%s"} {
		f.Add(u, "geheim7")
	}
	f.Fuzz(func(t *testing.T, form, password string) {
		if len(password) < 6 || strings.ContainsAny(password, "@/?&#:%,=\x00 ") || strings.Contains(strings.ReplaceAll(form, "%s", ""), password) || strings.Count(form, "%s") != 1 {
			return
		}
		at := strings.Index(form, "%s")
		behind, scheme := strings.HasPrefix(form[at+2:], "@"), strings.Index(form, "://")
		before := strings.HasSuffix(form[:at], "password=")
		if scheme < 0 || at < scheme || !(behind && strings.HasSuffix(form[:at], ":") && at > scheme+3) && !(before && strings.ContainsAny(form[max(0, at-10):at-9], "?&")) {
			return // it is no password there
		}
		u := strings.Replace(form, "%s", password, 1)
		if got := redactURL(u); strings.Contains(got, password) {
			t.Fatalf("%q is shown as %q", u, got)
		}
		splitURL(u)
	})
}

// A task that is taken keeps to the bounds that the scripts rely on.
func FuzzNewTask(f *testing.F) {
	f.Add([]byte(`{"Scope":{"Tenant":"a","Workspace":"b"},"Queue":"q","Retry":{"MaxAttempts":3,"Multiplier":2}}`))
	f.Add([]byte(`{"Scope":{"Tenant":"a","Workspace":"b"},"HeartbeatTimeout":1,"Labels":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var n NewTask
		if json.Unmarshal(raw, &n) != nil || n.Validate(validateNow) != nil {
			return
		}
		if !ValidID(n.Scope.Tenant) || n.TaskID != "" && !ValidID(n.TaskID) || n.HeartbeatTimeout < 0 || n.HeartbeatTimeout > MaxTimeout || n.HeartbeatTimeout != 0 && n.HeartbeatTimeout < MinTimeout ||
			n.HeartbeatInterval <= 0 || n.CancelGrace <= 0 || n.Retry != nil && (n.Retry.MaxAttempts < 1 || n.Retry.Multiplier < 1) || n.HeartbeatTimeout != 0 && n.HeartbeatTimeout != RoundTimeout(n.HeartbeatTimeout) {
			t.Fatalf("%s became %+v", raw, n)
		}
	})
}

// A probe URL that is taken is plain http or https, to a host, without a user.
func FuzzProbeURL(f *testing.F) {
	for _, u := range []string{"http://10.0.0.7:8081/healthz", "https://u:p@h/", "file:///etc/passwd", "http://", "http://h#x", "HTTP://h", "http://[::1]/", "http://h\r\nX: y/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		low := strings.ToLower(u)
		if u != "" && checkProbeURL(u) == nil && (!strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "https://") || strings.ContainsAny(u, "\r\n\x00")) {
			t.Fatalf("%q is taken", u)
		}
	})
}
