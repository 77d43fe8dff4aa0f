package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// The profile "cluster" of docker-compose.yml, as processes: six nodes that are started as it defines become one Cluster by its script.
// Lubdub serves on it, and the script leaves it as it is when it runs again.
func TestComposeCluster(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	services := compose(t)
	var first *redistest.Server
	var named, addresses []string
	for i := range 6 {
		name := fmt.Sprintf("redis-%d", i+1)
		args := slices.Concat(services[name].Entrypoint, services[name].Command)
		if len(args) < 2 || args[1] != "redis-server" || !slices.Equal(args[len(args)-2:], []string{"--cluster-announce-hostname", name}) {
			t.Fatalf("%s is started by %q", name, args)
		}
		args[len(args)-1] = "localhost"
		node := redistest.StartServer(t, args[2:]...)
		first = cmp.Or(first, node)
		named, addresses = append(named, name+":6379"), append(addresses, strings.Replace(node.Addr, "127.0.0.1", "localhost", 1))
	}
	run := services["redis-cluster"].Command
	if len(run) != 8 || run[1] != "/cluster.sh" || !slices.Equal(run[2:], named) {
		t.Fatalf("the nodes are %q, and the script is called with %q", named, run)
	}
	form := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", append([]string{"../../deploy/compose/cluster.sh"}, addresses...)...)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	form()
	client := first.Client()
	defer client.Close()
	until(t, "every primary has a replica", func() bool { // what a node is goes round from node to node
		known, err := client.ClusterNodes(t.Context()).Result()
		return err == nil && strings.Count(known, "slave ") == 3
	})
	url := regexp.MustCompile(`(?m)^LUBDUB_REDIS=(.*)$`).FindStringSubmatch(readFile(t, "../../deploy/compose/cluster.env"))[1]
	if url != "redis+cluster://"+strings.Join(named, ",") {
		t.Errorf("the nodes are %q, and Lubdub's are %q", named, url)
	}
	lubdub := launch(t, withKey, append([]string{"serve", "--redis", "redis+cluster://" + strings.Join(addresses, ",")}, anyPort...)...)
	api, _ := lubdub.urls()
	admin := adminToken(t)
	if status, body := request("POST", api+"/v1/tasks", admin, `{"taskId":"t1","queue":"q"}`); status != http.StatusCreated {
		t.Errorf("it takes no task: %d %s", status, body)
	}
	form() // as `docker compose up` does it again
	if status, body := request("GET", api+"/v1/tasks/t1", admin, ""); status != http.StatusOK {
		t.Errorf("the task is gone: %d %s", status, body)
	}
}

// The profile "load", as a process: its command loads a deployment and reports how long beats took, from a folder where it cannot write.
func TestComposeLoad(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	redis := redistest.StartServer(t)
	server := launch(t, withKey, append([]string{"serve", "--redis", redis.URL()}, anyPort...)...)
	api, _ := server.urls()
	args := compose(t)["load"].Command
	url := slices.Index(args, "--url")
	if url < 0 || args[url+1] != "http://balancer:8080" {
		t.Fatalf("it is called with %q", args)
	}
	args[url+1] = api
	for flag, less := range map[string]string{"--tracked": "256", "--for": "1s", "--rate": "100"} {
		at := slices.Index(args, flag)
		if at < 0 {
			t.Fatalf("%s is not in %q", flag, args)
		}
		args[at+1] = less
	}
	path := testenv.Program(t, "lubdub")
	if entry := compose(t)["load"].Entrypoint; !slices.Equal(entry, []string{"/lubdub-bench"}) {
		t.Fatalf("it is started by %q", entry)
	}
	cmd := exec.CommandContext(t.Context(), testenv.Program(t, "lubdub-bench"), append(args, "--lubdub", path)...)
	cmd.Env = append(os.Environ(), "BENCH_TOKEN="+adminToken(t))
	cmd.Dir = t.TempDir()
	if err := os.Chmod(cmd.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "p99") {
		t.Errorf("%v: %s", err, out)
	}
	left, err := os.ReadDir(cmd.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("it wrote %v (%v)", left, err)
	}
}
