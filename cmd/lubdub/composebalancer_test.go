package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// composeBalancer runs nginx with the configuration of docker-compose.yml, before replicas on this machine instead of those that
// Docker's name server knows. It gives its base URL.
func composeBalancer(t *testing.T, replicas ...string) string {
	t.Helper()
	path := "/usr/sbin/nginx" // where a user's PATH does not lead
	if found, err := exec.LookPath("nginx"); err == nil {
		path = found
	}
	address := redistest.FreeAddr()
	dir, servers := t.TempDir(), ""
	for _, url := range replicas {
		servers += "server " + strings.TrimPrefix(url, "http://") + ";"
	}
	private := "access_log off;"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		private += fmt.Sprintf(" %s_temp_path %s/%s;", kind, dir, kind)
	}
	text := readFile(t, "../../deploy/compose/nginx.conf")
	for _, change := range [][2]string{
		{"worker_processes auto;", "worker_processes 1; daemon off; master_process off; pid " + dir + "/pid;"},
		{"worker_rlimit_nofile 65536;", ""}, // more than whoever runs the tests may be allowed
		{"worker_connections 16384;", "worker_connections 256;"},
		{"access_log off;", private}, {"resolver 127.0.0.11 valid=5s;", ""}, {"server api:8080 resolve;", servers},
		{"listen 8080;", "listen " + address + ";"},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q does not stand in nginx.conf once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command(path, "-p", dir, "-c", file, "-e", filepath.Join(dir, "errors"))
	var out bytes.Buffer
	nginx.Stdout, nginx.Stderr = &out, &out
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = nginx.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = nginx.Process.Kill()
		<-ended
	})
	until(t, "nginx listens", func() bool {
		select {
		case <-ended:
			log, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Fatalf("nginx ended: %s%s", &out, log)
		default:
		}
		status, _ := ask("GET", "http://"+address+"/livez", "", "")
		return status == http.StatusOK
	})
	return "http://" + address
}

// The balancer of docker-compose.yml in front of two replicas: it takes what they take, goes to the other when one dies, and
// hands on what they say of an outage.
func TestBalancerOfCompose(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	var replicas []*running
	var urls []string
	for range 2 {
		r := launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--redis-timeout", "200ms"}, anyPort...)...)
		url, _ := r.urls()
		replicas, urls = append(replicas, r), append(urls, url)
	}
	base, admin := composeBalancer(t, urls...), adminToken(t)
	largest := `{"heartbeats":[` + strings.Repeat(" ", 4<<20-len(`{"heartbeats":[]}`)) + `]}`
	if status, body := ask("POST", base+"/v1/heartbeats", admin, largest); status != http.StatusBadRequest ||
		!strings.Contains(body, `"error":"invalid_request"`) {
		t.Errorf("the largest batch: %d %.200s", status, body)
	}
	if status, body := ask("POST", base+"/v1/heartbeats", admin, largest+" "); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger one: %d %.200s", status, body)
	}
	create := func() (int, string) { return ask("POST", base+"/v1/tasks", admin, quickTask) }
	replicas[0].signal(syscall.SIGKILL)
	<-replicas[0].exited
	until(t, "the balancer goes to the other replica", func() bool { status, _ := create(); return status == http.StatusCreated })
	for range 20 {
		if status, body := create(); status != http.StatusCreated {
			t.Errorf("with one replica of two: %d %s", status, body)
		}
	}
	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if status, body := create(); status != http.StatusServiceUnavailable || !strings.Contains(body, `"error":"store_unavailable"`) {
			t.Errorf("while Redis does not answer: %d %s", status, body)
		}
	}
	if err := redis.Thaw(); err != nil {
		t.Fatal(err)
	}
	until(t, "it goes on after the outage", func() bool { status, _ := create(); return status == http.StatusCreated })
}
