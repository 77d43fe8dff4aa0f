package bench

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/internal/redistest"
)

// BenchmarkBeat is single beats over HTTP, closed loop, 256 connections, each with a progress report; every one is
// acknowledged by a real Redis. It reports CPU per beat of the server and of Redis, read from /proc.
//
//	go test ./bench -run '^$' -bench Beat -benchtime 200000x
func BenchmarkBeat(b *testing.B) {
	redis := redistest.StartServer(b)
	server, url, admin := serve(b, redis.URL())
	tasks := create(b, url, admin, 256)
	before := map[string]float64{"server": cpu(b, server), "redis": cpu(b, redis.Pid())}

	client := &fasthttp.Client{MaxConnsPerHost: len(tasks)}
	var next atomic.Int64
	b.SetParallelism(len(tasks) / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		task := tasks[int(next.Add(1)-1)%len(tasks)]
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.Header.SetMethod("POST")
		req.SetRequestURI(url + "/v1/tasks/" + task.TaskID + "/heartbeat")
		req.Header.Set("Authorization", "Bearer "+task.TaskToken)
		req.Header.SetContentType("application/json")
		req.SetBodyString(`{"attempt":1,"workerId":"worker-1","progressPct":45,"message":"Processing partition 5 of 10"}`)
		for pb.Next() {
			if err := client.Do(req, resp); err != nil || resp.StatusCode() != 200 {
				b.Errorf("beat: %v %d %s", err, resp.StatusCode(), resp.Body())
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "beats/s")
	b.ReportMetric((cpu(b, server)-before["server"])*1e6/float64(b.N), "server-µs/beat")
	b.ReportMetric((cpu(b, redis.Pid())-before["redis"])*1e6/float64(b.N), "redis-µs/beat")
}

// serve builds and starts one replica and gives its process id, its URL and a control token.
func serve(b *testing.B, redisURL string) (pid int, url, admin string) {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "lubdub")
	build := exec.Command("go", "build", "-o", bin, "./cmd/lubdub")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	env := append(os.Environ(), "LUBDUB_SIGNING_KEYS=k1="+base64.StdEncoding.EncodeToString([]byte("a key of a benchmark, 32 bytes up")))
	cmd := exec.Command(bin, "serve", "--redis", redisURL, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "error")
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	token := exec.Command(bin, "token", "--role", "admin")
	token.Env = env
	text, err := token.Output()
	if err != nil {
		b.Fatal(err)
	}
	return cmd.Process.Pid, regexp.MustCompile(`http://[0-9.:]+`).FindString(line), strings.TrimSpace(string(text))
}

func create(b *testing.B, url, admin string, n int) []v1.TaskEnvelope {
	b.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	req.Header.SetMethod("POST")
	req.SetRequestURI(url + "/v1/tasks:batch")
	req.Header.Set("Authorization", "Bearer "+admin)
	req.Header.SetContentType("application/json")
	req.SetBodyString(`{"tasks":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`)
	if err := fasthttp.Do(req, resp); err != nil {
		b.Fatal(err)
	}
	var made struct{ Results []v1.TaskEnvelope }
	if err := json.Unmarshal(resp.Body(), &made); err != nil || len(made.Results) != n || made.Results[0].TaskToken == "" {
		b.Fatalf("%v %s", err, resp.Body())
	}
	return made.Results
}

// cpu is what a process has used so far, user and system, in seconds.
func cpu(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skipf("no CPU times here: %v", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ
}
