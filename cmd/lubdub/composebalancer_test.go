package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// composeBalancer runs nginx with the configuration of docker-compose.yml, before replicas on this machine instead of those that
// Docker's name server knows.
func composeBalancer(t *testing.T, address string, replicas ...string) {
	t.Helper()
	dir, servers := t.TempDir(), ""
	for _, url := range replicas {
		servers += "server " + strings.TrimPrefix(url, "http://") + " fail_timeout=2s;"
	}
	private := "access_log off;"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		private += fmt.Sprintf(" %s_temp_path %s/%s;", kind, dir, kind)
	}
	file := changed(t, "../../deploy/compose/nginx.conf", [][2]string{
		{"worker_processes auto;", "worker_processes 1; daemon off; master_process off; pid " + dir + "/pid;"},
		{"worker_rlimit_nofile 65536;", ""}, // more than the user who runs the tests may be allowed
		{"worker_connections 16384;", "worker_connections 256;"},
		{"access_log off;", private}, {"resolver 127.0.0.11 valid=5s;", ""}, {"server api:8080 resolve fail_timeout=2s;", servers},
		{"listen 8080;", "listen " + address + ";"},
	})
	runBalancer(t, "nginx", address, balancerProgram(t, "nginx"), "-p", dir, "-c", file, "-e", "stderr")
	awaitBalanced(t, address)
}

// hostBalancer runs haproxy with the configuration of deploy/haproxy, before replicas on this machine.
func hostBalancer(t *testing.T, address string, replicas ...string) {
	t.Helper()
	servers := ""
	for i, url := range replicas {
		servers += fmt.Sprintf("server api-%d %s\n  ", i+1, strings.TrimPrefix(url, "http://"))
	}
	file := changed(t, "../../deploy/haproxy/haproxy.cfg", [][2]string{
		{"maxconn 16384", "maxconn 2000"}, // more than the user who runs the tests may be allowed
		{"bind 127.0.0.1:8080", "bind " + address}, {"server api-1 127.0.0.1:8081", servers}, {"server api-2 127.0.0.1:8082", ""},
	})
	runBalancer(t, "haproxy", address, balancerProgram(t, "haproxy"), "-db", "-f", file)
	awaitBalanced(t, address)
}

// changed is a copy of a file with some texts replaced, each of which must occur once.
func changed(t *testing.T, path string, changes [][2]string) string {
	t.Helper()
	text := readFile(t, path)
	for _, change := range changes {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q does not occur once in %s", change[0], path)
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	file := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The balancer of docker-compose.yml in front of two replicas: it accepts what they accept, switches to the other when one dies, and passes
// on their responses in an outage.
func TestBalancerOfCompose(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	redis := redistest.StartServer(t)
	var replicas []*running
	var urls []string
	for range 2 {
		r := launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--redis-timeout", "4s"}, anyPort...)...)
		url, _ := r.urls()
		replicas, urls = append(replicas, r), append(urls, url)
	}
	address, admin := redistest.FreeAddr(), adminToken(t)
	composeBalancer(t, address, urls...)
	base := "http://" + address
	largest := `{"heartbeats":[` + strings.Repeat(" ", 4<<20-len(`{"heartbeats":[]}`)) + `]}`
	if status, body := request("POST", base+"/v1/heartbeats", admin, largest); status != http.StatusBadRequest ||
		!strings.Contains(body, `"error":"invalid_request"`) {
		t.Errorf("the largest batch: %d %.200s", status, body)
	}
	if status, body := request("POST", base+"/v1/heartbeats", admin, largest+" "); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger one: %d %.200s", status, body)
	}
	create := func() (int, string) { return request("POST", base+"/v1/tasks", admin, quickTask) }
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
	for range 2 {
		if status, body := create(); status != http.StatusServiceUnavailable || !strings.Contains(body, `"error":"store_unavailable"`) {
			t.Errorf("while Redis does not answer: %d %s", status, body)
		}
	}
	if err := redis.Thaw(); err != nil {
		t.Fatal(err)
	}
	until(t, "creating tasks works again after the outage", func() bool { status, _ := create(); return status == http.StatusCreated })
}
