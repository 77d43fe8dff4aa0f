//go:build go1.25

package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// The server of benchmarks is a process of its own, so that what this one uses is what the client costs.
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
	at := "2026-01-01T00:00:00.000Z"
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

// used is the CPU that this process has used.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkNoOp is what it costs to claim a task that is nothing to do, to start and to complete it: with a client that does no more than
// this, on connections of its own and by net/http, and with a worker.
func BenchmarkNoOp(b *testing.B) {
	for _, places := range []int{1, 100} {
		for name, run := range map[string]func(b *testing.B, addr string, places int){
			"bare": bareNoOps(bareConn), "net-http": bareNoOps(bareHTTP), "worker": workerNoOps,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, places), func(b *testing.B) {
				addr := startServer(b)
				run(b, addr, places)
			})
		}
	}
}

func workerNoOps(b *testing.B, addr string, places int) {
	c, err := client.New("http://"+addr, client.Token("control"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.Concurrency(places), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	var done atomic.Int64
	enough := make(chan struct{})
	w.Handle("job", func(context.Context, *worker.Task) (any, error) {
		if done.Add(1) == int64(b.N) {
			close(enough)
		}
		return nil, nil
	})
	ended := make(chan error, 1)
	before := used(b)
	b.ResetTimer()
	go func() { ended <- w.Run(context.Background()) }()
	<-enough
	b.StopTimer()
	b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	w.Close()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// asker makes a call and returns the answer's body, which holds until the next one.
type asker func(path, token, in string) ([]byte, error)

// bareNoOps does the same with as little as it takes, on as many connections as it has places, 4 at most.
func bareNoOps(dial func(addr string) (ask asker, done func(), err error)) func(b *testing.B, addr string, places int) {
	return func(b *testing.B, addr string, places int) {
		var left atomic.Int64
		left.Store(int64(b.N))
		before := used(b)
		b.ResetTimer()
		var all sync.WaitGroup
		for range min(places, 4) {
			all.Add(1)
			go func() {
				defer all.Done()
				ask, done, err := dial(addr)
				if err == nil {
					err = bareLoop(ask, places, &left)
					done()
				}
				if err != nil {
					b.Error(err)
				}
			}()
		}
		all.Wait()
		b.StopTimer()
		b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	}
}

func bareConn(addr string) (asker, func(), error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(c)
	var body []byte
	return func(path, token, in string) ([]byte, error) {
		_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", path, addr, token, len(in), in)
		if err == nil {
			body, err = readBare(r, body)
		}
		return body, err
	}, func() { _ = c.Close() }, nil
}

func bareHTTP(addr string) (asker, func(), error) {
	c := &http.Client{Transport: &http.Transport{}}
	return func(path, token, in string) ([]byte, error) {
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+path, strings.NewReader(in))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = res.Body.Close() }()
		return io.ReadAll(res.Body)
	}, c.CloseIdleConnections, nil
}

func bareLoop(ask asker, places int, left *atomic.Int64) error {
	token := strings.Repeat("x", 400)
	for left.Load() > 0 {
		body, err := ask("/v1/queues/default/claim", token, fmt.Sprintf(`{"types":["job"],"max":%d,"waitMs":30000}`, places))
		if err != nil {
			return err
		}
		var claimed struct {
			Tasks []struct{ TaskID, TaskToken string }
		}
		if err := json.Unmarshal(body, &claimed); err != nil {
			return err
		}
		for _, t := range claimed.Tasks {
			if _, err := ask("/v1/tasks/"+t.TaskID+"/started", t.TaskToken, `{"attempt":1}`); err != nil {
				return err
			}
			if _, err := ask("/v1/tasks/"+t.TaskID+"/completed", t.TaskToken, `{"attempt":1,"outcome":"SUCCEEDED","output":null}`); err != nil {
				return err
			}
			if left.Add(-1) <= 0 {
				return nil
			}
		}
	}
	return nil
}

// readBare reads an answer, which says its length.
func readBare(r *bufio.Reader, body []byte) ([]byte, error) {
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if length < 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if cap(body) < length {
		body = make([]byte, length)
	}
	body = body[:length]
	_, err := io.ReadFull(r, body)
	return body, err
}

// BenchmarkBeatOfTenThousand is one beat of a worker that holds as many tasks: written, sent over loopback, answered and read.
func BenchmarkBeatOfTenThousand(b *testing.B) {
	const n = 10_000
	addr := startServer(b)
	var beats, bytes atomic.Int64
	carrier := carrier(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/heartbeat") {
			beats.Add(1)
			bytes.Add(r.ContentLength)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	c, err := client.New("http://"+addr, client.Token("control"), client.Transport(carrier))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.Concurrency(n), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	var begun atomic.Int64
	finish, all := make(chan struct{}), make(chan struct{})
	w.Handle("job", func(context.Context, *worker.Task) (any, error) {
		if begun.Add(1) == n {
			close(all)
		}
		<-finish
		return nil, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	<-all
	held := heap() - before
	worker.BeatNow(w)
	beats.Store(0)
	bytes.Store(0)
	cpu := used(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		worker.BeatNow(w)
	}
	b.StopTimer()
	b.ReportMetric(float64((used(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(beats.Load())/float64(b.N), "requests/op")
	b.ReportMetric(float64(bytes.Load())/float64(b.N)/n, "wire-B/task")
	b.ReportMetric(float64(held)/n, "heap-B/task")
	close(finish)
	w.Kill()
	<-ended
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
