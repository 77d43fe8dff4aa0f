//go:build go1.25

package worker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The server of benchmarks is a separate process, so that the measurements of this one are the client's cost.
const asServer = "LUBDUB_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serveNoOps()
		return
	}
	os.Exit(m.Run())
}

// serveNoOps hands out tasks without end, until its input ends.
func serveNoOps() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var number atomic.Int64
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := answerNoOp(r, &number)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}))
}

func answerNoOp(r *http.Request, number *atomic.Int64) []byte {
	body, _ := io.ReadAll(r.Body)
	const at = "2026-01-01T00:00:00.000Z"
	switch path := r.URL.Path; {
	case path == "/v1/workers":
		return fmt.Appendf(nil, `{"workerId":"w","machineId":"m","workerToken":"%s","tokenExpiresAt":%q,"heartbeatIntervalMs":10000,`+
			`"heartbeatTimeoutMs":30000}`, strings.Repeat("x", 400), at)
	case strings.HasSuffix(path, "/claim"):
		var claim struct{ Max int }
		_ = json.Unmarshal(body, &claim)
		out := []byte(`{"tasks":[`)
		for i := range claim.Max {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `{"taskId":"task_%d","runId":"run_1","assetId":null,"taskKey":null,"tenantId":"default","workspaceId":"default",`+
				`"attempt":1,"state":"DISPATCHED","resources":{},"enqueuedAt":%q,"deadline":null,"callbackBaseUrl":"http://%s","taskToken":"%s",`+
				`"tokenExpiresAt":null,"heartbeatIntervalMs":30000,"heartbeatTimeoutMs":null,"cancelGracePeriodMs":30000,"type":"job",`+
				`"queue":"default","labels":{},"payload":{"to":"a@b.c"}}`, number.Add(1), at, r.Host, strings.Repeat("y", 400))
		}
		return append(out, `]}`...)
	case strings.HasSuffix(path, "/started"):
		return fmt.Appendf(nil, `{"acknowledged":true,"serverTime":%q}`, at)
	case strings.HasSuffix(path, "/completed"):
		return fmt.Appendf(nil, `{"acknowledged":true,"finalState":"SUCCEEDED","serverTime":%q}`, at)
	case path == "/v1/heartbeats":
		out := []byte(`{"results":[`)
		for rest := body; ; {
			_, item, ok := bytes.Cut(rest, []byte(`{"taskId":"`))
			if !ok {
				return fmt.Appendf(out, `],"serverTime":%q}`, at)
			}
			id, more, _ := bytes.Cut(item, []byte(`"`))
			if rest = more; out[len(out)-1] == '}' {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `{"taskId":"%s","status":200,"acknowledged":true,"shouldCancel":false,"serverTime":%q,"nextHeartbeatMs":1000}`,
				id, at)
		}
	case strings.HasSuffix(path, "/heartbeat"):
		return fmt.Appendf(nil, `{"accepted":true,"shouldDrain":false,"cancelTasks":[],"lostTasks":[],"heartbeatIntervalMs":10000,`+
			`"heartbeatTimeoutMs":30000,"serverTime":%q}`, at)
	}
	return []byte(`{"workerId":"w"}`)
}

func startServer(tb testing.TB) (addr string) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), asServer+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}
