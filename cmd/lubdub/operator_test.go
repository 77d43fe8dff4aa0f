package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// desk is the environment of an operator: a server with its own Redis, and a home directory for contexts.
type desk struct {
	t       *testing.T
	api     string
	home    string
	server  *running
	redis   string
	environ []string
}

// newDesk starts a server and keeps a context for it with a token of a role.
func newDesk(t *testing.T, role token.Role) *desk {
	t.Helper()
	skipIfShort(t)
	redis := redistest.StartServer(t)
	server := launch(t, append([]string{"LUBDUB_REDIS=" + redis.URL(), "LUBDUB_SHARDS=2", "LUBDUB_LISTEN=127.0.0.1:0",
		"LUBDUB_ADMIN_LISTEN=127.0.0.1:0", "LUBDUB_LOG_LEVEL=error",
		"LUBDUB_WORKER_HEARTBEAT_INTERVAL=10m", // workers of these tests never beat
	}, withKey...), "serve")
	d := &desk{t: t, home: t.TempDir(), server: server, redis: redis.URL()}
	d.api, _ = server.urls()
	d.environ = []string{"XDG_CONFIG_HOME=" + d.home}
	d.ok(d.with(bearer(t, role, time.Now()), "context", "set", "test", "--server", d.api, "--token", "-"))
	return d
}

// bearer is a token of a role in default/default, issued at some time for an hour.
func bearer(t *testing.T, role token.Role, at time.Time) string {
	t.Helper()
	keys, err := token.ParseKeys(testKey)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := token.NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := ring.MintControl(token.Control{
		Role: role, Tenant: "default", Workspace: "default", Subject: "tester", TTL: time.Hour,
	}, at)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// answer is what a command came to.
type answer struct {
	code     int
	out, err string
	args     []string
}

// run runs the program as it is shipped.
func (d *desk) run(args ...string) answer { return d.with("", args...) }

// with is run with something on standard input.
func (d *desk) with(stdin string, args ...string) answer {
	d.t.Helper()
	path := testenv.Program(d.t, "lubdub")
	cmd := exec.Command(path, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, d.environ...)
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		d.t.Fatal(err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errs.String(), args}
}

// ok is for what must succeed.
func (d *desk) ok(a answer) answer {
	d.t.Helper()
	return d.is(a, exit.OK)
}

// is checks the exit code, and parts of the output on either stream.
func (d *desk) is(a answer, code int, parts ...string) answer {
	d.t.Helper()
	if a.code != code {
		d.t.Fatalf("lubdub %s ended with %d, want %d\n%s%s", strings.Join(a.args, " "), a.code, code, a.out, a.err)
	}
	for _, part := range parts {
		if !strings.Contains(a.out+a.err, part) {
			d.t.Errorf("lubdub %s does not print %q:\n%s%s", strings.Join(a.args, " "), part, a.out, a.err)
		}
	}
	return a
}

// get reads from the API without the program.
func (d *desk) get(path string) []byte {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.api+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer(d.t, token.RoleAdmin, time.Now()))
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return body
}

func TestOperatorExitCodes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	admin := bearer(t, token.RoleAdmin, time.Now())
	boss := &desk{t: t, home: d.home, environ: append(slices.Clone(d.environ), "LUBDUB_TOKEN="+admin)}
	boss.ok(boss.run("task", "create", "--id", "letter-1", "--queue", "mail", "--run", "post-1"))
	boss.ok(boss.run("webhook", "create", "--id", "office", "--url", "https://example.com/", "--events", "task.failed"))

	d.is(d.run("task", "get", "letter-1"), exit.OK, "letter-1", "QUEUED", "mail")
	d.is(d.run("task", "get", "leter-1"), exit.NotFound, "did you mean letter-1?")
	d.is(d.run("task", "get", "leter-1", "letter-1"), exit.NotFound, "did you mean letter-1?", "QUEUED")
	d.is(d.run("task", "cancl", "x"), exit.Misuse, `did you mean "cancel"`)
	d.is(d.run("wrker"), exit.Misuse, `did you mean "worker"`)
	d.is(d.run("task", "ls", "--state", "RUNING"), exit.Misuse, "RUNING")
	d.is(d.run("task", "ls", "-o", "xml"), exit.Misuse, "-o")
	d.is(d.run("task", "get", "task/letter-1"), exit.OK, "letter-1")             // as -o name prints it
	d.is(d.run("run", "ls", "post-1", "--state", "queued"), exit.OK, "letter-1") // words of the API are taken in any case
	d.is(d.run("task", "ls", "--because", "worker_lost"), exit.OK, "No task with reason=WORKER_LOST")
	d.is(d.run("webhook", "deliveries", "office", "--status", "dead"), exit.OK, "No delivery with status=DEAD")
	d.is(d.run("task", "cancel", "letter-1"), exit.NotAllowed, "submitter or operator", "role viewer in default/default",
		"context test")
	d.is(d.run("worker", "ls", "--queue", "mails"), exit.OK, "No worker with queue=mails", "default/default", d.api)
	d.is(d.run("worker", "ls", "--context", "tst"), exit.Misuse, "did you mean test?")

	old := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_TOKEN="+bearer(t, token.RoleOperator, time.Now().Add(-2*time.Hour)))}
	old.is(old.run("worker", "ls"), exit.NotAllowed, "The token expired 1h ago", "lubdub token --role operator", "--subject 'tester'",
		"lubdub context set test --token -")
	none := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_URL="+d.api)}
	none.is(none.run("worker", "ls"), exit.NotAllowed, "No token was sent")
	unreachable := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_URL=http://127.0.0.1:1", "LUBDUB_TOKEN="+admin)}
	unreachable.is(unreachable.run("worker", "ls"), exit.Unavailable, "http://127.0.0.1:1 does not answer")
	open := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_URL=http://lubdub.example.com", "LUBDUB_TOKEN="+admin)}
	open.is(open.run("worker", "ls"), exit.Misuse, "would expose the token", "--allow-http")
	nowhere := &desk{t: t, environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
	nowhere.is(nowhere.run("worker", "ls"), exit.Misuse, "lubdub dev", "lubdub context set")
	homeless := &desk{t: t}
	homeless.is(homeless.run("worker", "ls"), exit.Misuse, "HOME")
}

func TestOperatorContexts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	path := filepath.Join(d.home, "lubdub", "contexts.yaml")
	secret := bearer(t, token.RoleAdmin, time.Now())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	if a := d.ok(d.run("context", "ls")); strings.Contains(a.out, "eyJ") || !strings.Contains(a.out, "a token, role admin") {
		t.Errorf("contexts are listed as %s", a.out)
	}
	d.is(d.run("context", "set", "other", "--server", d.api, "--token", secret), exit.Misuse, "--token -")
	d.is(d.run("context", "set", "other", "--server", "http://lubdub.example.com"), exit.OK)
	d.is(d.run("context", "set", "other", "--server", "lubdub:8080"), exit.Misuse,
		"lubdub: the server's address is not like https://host:port")
	d.is(d.with(secret, "context", "set", "other", "--token", "-"), exit.Misuse, "would expose the token")
	d.is(d.run("context", "set", "new", "--tenant", "a"), exit.Misuse, "say where it is with --server")
	d.ok(d.run("context", "set", "printed", "--server", d.api, "--token-command", "printf '%s' "+secret, "--use"))
	d.is(d.run("context", "ls"), exit.OK, "*  printed", "a command")
	d.is(d.run("queue", "ls"), exit.OK, "No queue")
	d.ok(d.run("context", "set", "printed", "--token-command", "echo no such >&2; exit 3"))
	d.is(d.run("queue", "ls"), exit.Failed, "token command of the context printed failed", "no such")
	d.is(d.run("queue", "ls", "--context", "test"), exit.OK)
	named := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_CONTEXT=test")}
	named.ok(named.run("queue", "ls"))
	d.is(d.run("context", "use", "tset"), exit.Misuse, "did you mean test?")
	d.ok(d.run("context", "rm", "printed"))
	d.is(d.run("queue", "ls"), exit.Misuse, "no server is known")
	d.ok(d.run("context", "use", "test"))
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	d.is(d.run("queue", "ls"), exit.Misuse, "chmod 600 "+path)
}

// A context's token goes to the context's server, and to no other that a variable or a flag names.
func TestOperatorTokensStayAtHome(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	received := make(chan string, 10)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer stranger.Close()
	d.is(d.run("queue", "ls", "--server", stranger.URL), exit.NotAllowed)
	d.is(d.run("queue", "ls", "--context", "test", "--server", stranger.URL), exit.NotAllowed)
	elsewhere := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_URL="+stranger.URL)}
	elsewhere.is(elsewhere.run("queue", "ls"), exit.NotAllowed)
	close(received)
	n := 0
	for header := range received {
		if n++; header != "" {
			t.Errorf("a stranger received %.10s…", header)
		}
	}
	if n != 3 {
		t.Errorf("the stranger received %d requests", n)
	}
}

func TestOperatorOutput(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	for _, id := range []string{"a", "b", "c"} {
		d.ok(d.run("task", "create", "--id", id, "--queue", "mail", "--type", "letter", "--label", "to="+id, "--payload", `{"x":1}`))
	}
	same := func(got string, want []byte) {
		t.Helper()
		var a, b bytes.Buffer
		if err := errors.Join(json.Compact(&a, []byte(got)), json.Compact(&b, want)); err != nil || a.String() != b.String() {
			t.Errorf("%v: got\n%s\nand the API returns\n%s", err, a.String(), b.String())
		}
	}
	same(d.ok(d.run("task", "get", "a", "-o", "json")).out, d.get("/v1/tasks/a"))
	same(d.ok(d.run("task", "ls", "-o", "json")).out, d.get("/v1/tasks?order=desc")) // as the dashboard shows them
	same(d.ok(d.run("task", "ls", "--oldest", "-o", "json")).out, d.get("/v1/tasks"))
	same(d.ok(d.run("task", "get", "b", "-o", "jsonl")).out, d.get("/v1/tasks/b"))
	if a := d.ok(d.run("task", "ls", "-o", "name")); a.out != "task/c\ntask/b\ntask/a\n" {
		t.Errorf("names are %q", a.out)
	}
	d.is(d.run("task", "get", "a", "-o", "yaml"), exit.OK, "taskId: a\n", "state: QUEUED\n")
	d.is(d.run("task", "ls", "-o", "wide"), exit.OK, "LABELS", "to=b")
	d.is(d.run("task", "ls", "--limit", "2"), exit.OK, "Showing 2 of 3 tasks (--limit 0 for all).")
	if a := d.is(d.run("task", "ls", "--limit", "2", "-o", "json"), exit.OK, "2 of 3"); strings.Contains(a.out, "nextPageToken") {
		t.Errorf("a page's token is in a list that is no page: %s", a.out)
	}
	d.is(d.run("task", "ls", "-l", "to=b"), exit.OK, "\nb ")
	if a := d.run("task", "ls", "-l", "to=b"); strings.Contains(a.out, "\x1b") || strings.Contains(a.out, "\na ") {
		t.Errorf("%q", a.out)
	}
	d.is(d.run("task", "ls", "-l", "to"), exit.Misuse, "not like key=value")
	d.is(d.run("-o", "name", "--context=test", "task", "ls", "-l", "to=b"), exit.OK, "task/b\n") // as kubectl has it
	d.is(d.run("--context", "tset", "task", "ls"), exit.Misuse, "did you mean test?")
	d.is(d.run("status", "--timeout", "0s"), exit.Misuse, "leaves no time for an answer")
	d.is(d.run("event", "ls", "--type", "task.created", "--limit", "2"), exit.OK, "task.created", "tester", "2 events are shown")
	d.is(d.run("event", "ls", "--oldest", "-o", "jsonl", "--limit", "1"), exit.OK, `"subject":"a"`)
	var part v1.EventList
	one := []string{"event", "ls", "--type", "task.created", "--oldest", "--limit", "1", "-o", "json"}
	if a := d.ok(d.run(one...)); json.Unmarshal([]byte(a.out), &part) != nil || part.Next == "" {
		t.Fatalf("no cursor to continue from: %s", a.out)
	}
	d.is(d.run(append(one, "--after", part.Next)...), exit.OK, `"subject": "b"`)
	d.is(d.run("system"), exit.OK, "api,sweeper", "SHARD")
	d.is(d.run("system", "sweep"), exit.OK, "0 zombies")
	d.is(d.run("system", "scopes"), exit.NotAllowed, "workspace is *")
}

// After dev, the next command works without a token or an address.
func TestDevKeepsAContext(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	home := t.TempDir()
	d := &desk{t: t, environ: []string{"XDG_CONFIG_HOME=" + home}}
	r := launch(t, d.environ, "dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	r.line("The context dev was saved")
	r.line("#   lubdub worker ls")
	r.line("zombies") // the fleet plays
	d.is(d.run("worker", "ls"), exit.OK, "worker-0", "ONLINE")
	d.is(d.run("context", "ls"), exit.OK, "*  dev", "lubdub-dev/fleet", "a token, role admin")
	if info, err := os.Stat(filepath.Join(home, "lubdub", "contexts.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	d.ok(d.run("context", "set", "prod", "--server", "https://lubdub.example.com", "--use"))
	again := launch(t, d.environ, "dev", "--no-fleet", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	again.line("#   lubdub worker ls --context dev") // what an operator chose stays chosen
	d.is(d.run("queue", "ls", "--context", "dev"), exit.OK, "No queue in default/default")
	r.signal(syscall.SIGTERM)
	r.wait()
	d.is(d.run("queue", "ls", "--context", "dev"), exit.OK, "No queue in default/default") // the context is that of the other dev
	again.signal(syscall.SIGTERM)
	again.wait()
	if left := d.run("context", "ls"); strings.Contains(left.out, "dev") || !strings.Contains(left.out, "prod") {
		t.Errorf("contexts after dev has ended: %s", left.out)
	}
}
