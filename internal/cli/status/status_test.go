package status

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// newSession returns a session that writes tables to out; no server answers it.
func newSession(t *testing.T, out io.Writer) *session.Session {
	flags := session.Flags{Server: "http://127.0.0.1:8080", Output: "table", Timeout: time.Second}
	s, err := flags.Open(&session.Env{Context: t.Context(), Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Workers that were lost are shown with what became of their tasks, also when nothing is lost any more.
func TestStatusShowsWhoWasLost(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	s := newSession(t, &out)
	name := "mailer"
	st := &deployment.State{Verdicts: &v1.VerdictCounts{}, Responds: true, System: &v1.System{RecentlyLostTotal: 900}}
	for n := range 7 {
		st.System.RecentlyLost = append(st.System.RecentlyLost, v1.LostWorker{
			WorkerID: fmt.Sprintf("wkr_%d", n), Name: &name, MachineID: "host-7", Queue: "mail", Reason: "HEARTBEAT_TIMEOUT",
			LastHeartbeatAt: v1.At(now.Add(-121 * time.Minute)), LostAt: v1.At(now.Add(-61 * time.Minute)),
			Attempts: 4, Requeued: 2, Failed: 1, Exhausted: 1,
		})
	}
	showLost(s, st)
	text := out.String()
	for _, part := range []string{
		"  Worker wkr_0 (mailer) on host-7 (queue mail) lost 1h1m ago (HEARTBEAT_TIMEOUT), last heartbeat 2h1m ago; it held " +
			"4 attempts.\n",
		"  and 895 more workers: lubdub status -o json\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "Nothing") {
		t.Errorf("it says\n%s", text)
	}
}

// What a server cannot report is not shown as healthy.
func TestWhatIsNotToldIsNotWell(t *testing.T) {
	var out bytes.Buffer
	s := newSession(t, &out)
	st := &deployment.State{Health: &v1.Health{Status: "degraded", Message: "The store does not answer"},
		Unread: errors.New("the store does not answer")}
	show(s, st, st.Findings(), &resource.Page[v1.Task]{})
	if text := out.String(); !strings.Contains(text, "  workers: not available now\n") || strings.Contains(text, "no problems found") {
		t.Errorf("it says\n%s", text)
	}
}

// What to do names a failed task, and the command that retries it, or all if there are more.
func TestWhatToDoNamesAFailedTask(t *testing.T) {
	for n, want := range map[int]string{
		0: "  Nothing.\n",
		1: "  - lubdub why t1; once the cause is fixed: lubdub task retry t1\n",
		3: "  - lubdub why t1 (and 2 more failed tasks: lubdub task ls --state failed --since 1h); once the cause is fixed: " +
			"lubdub task retry --since 1h --dry-run, then without --dry-run\n",
	} {
		var out bytes.Buffer
		failed := &resource.Page[v1.Task]{}
		if n > 0 {
			failed.Entries = []resource.Entry[v1.Task]{{Value: &v1.Task{TaskID: "t1"}}}
		}
		st := &deployment.State{Responds: true, Stats: &v1.Stats{Levels: v1.Levels{Tasks: map[string]int{"FAILED": n}}}}
		showWhatToDo(newSession(t, &out), st, nil, failed)
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
