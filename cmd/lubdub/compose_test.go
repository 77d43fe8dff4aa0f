package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lubdub-io/lubdub/api"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// composeService is what the tests look at of a service.
type composeService struct {
	Build           string            `yaml:"build"`
	Profiles        []string          `yaml:"profiles"`
	Restart         string            `yaml:"restart"`
	Entrypoint      []string          `yaml:"entrypoint"`
	Command         []string          `yaml:"command"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	Environment     map[string]string `yaml:"environment"`
	DependsOn       any               `yaml:"depends_on"`
	Healthcheck     *struct {
		Test    []string `yaml:"test"`
		Timeout string   `yaml:"timeout"`
	} `yaml:"healthcheck"`
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var composeVariable = regexp.MustCompile(`\$\{(\w+)(:[-?][^}]*)?\}`)

// compose reads docker-compose.yml as Compose would with a signing key in the environment.
func compose(t *testing.T) map[string]composeService {
	t.Helper()
	text := composeVariable.ReplaceAllStringFunc(readFile(t, "../../docker-compose.yml"), func(v string) string {
		m := composeVariable.FindStringSubmatch(v)
		if m[1] == "LUBDUB_SIGNING_KEYS" {
			return testKey
		}
		return strings.TrimPrefix(m[2], ":-")
	})
	var file struct {
		Services map[string]composeService `yaml:"services"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(text), &file, yaml.AllowDuplicateMapKey()); err != nil { // what is merged in is overridden
		t.Fatal(err)
	}
	return file.Services
}

func composeDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Lubdub's services must get the time that they take to stop, and have readiness checks.
func TestComposeFitsTheSettings(t *testing.T) {
	services := compose(t)
	roles := map[string]int{}
	for _, once := range []string{"redis-cluster", "load"} { // they end when their work is done
		if s := services[once]; s.Healthcheck != nil || s.Restart != "" || len(s.Profiles) != 1 {
			t.Errorf("%s does its work once: %+v", once, s)
		}
		delete(services, once)
	}
	for name, s := range services {
		if s.Healthcheck == nil || s.Restart != "unless-stopped" {
			t.Errorf("%s has no health check, or is not started again when it ends", name)
		}
		if s.Build == "" {
			continue
		}
		var environ []string
		for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
			environ = append(environ, key+"="+s.Environment[key])
		}
		cfg := loaded(t, environ)
		roles[cfg.Roles.String()]++
		if _, err := keyring(cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if grace, needed := composeDuration(t, s.StopGracePeriod), cfg.DrainDelay+shutdownTimeout; grace <= needed {
			t.Errorf("%s is killed %v after SIGTERM, and may take %v", name, grace, needed)
		}
		if s.Healthcheck != nil && (!slices.Equal(s.Healthcheck.Test, []string{"CMD", "/lubdub", "health"}) ||
			composeDuration(t, s.Healthcheck.Timeout) <= 2*time.Second) {
			t.Errorf("%s: its health check is %+v, and 'lubdub health' waits for 2s", name, s.Healthcheck)
		}
		if strings.HasPrefix(cfg.AdminListen, "127.") || strings.HasPrefix(cfg.Listen, "127.") {
			t.Errorf("%s listens where no client reaches it", name)
		}
	}
	if roles["api"] != 1 || roles["sweeper"] != 1 || len(services) != 12 {
		t.Errorf("%v of %d services", roles, len(services))
	}
}

// The program in the image can verify certificates, and is where the health check looks for it.
func TestImageHasRootsAndTheBinary(t *testing.T) {
	text := readFile(t, "../../Dockerfile")
	_, image, _ := strings.Cut(text, "\nFROM scratch\n")
	for _, want := range []string{
		"COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\n", "COPY --from=build /lubdub /lubdub\n",
		"ENTRYPOINT [\"/lubdub\"]\n", "USER 65532:65532\n",
	} {
		if !strings.Contains(image, want) {
			t.Errorf("%q is missing in the image", want)
		}
	}
}

// nginxSetting returns the value of a directive that appears once in the balancer's configuration.
func nginxSetting(t *testing.T, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*`+name+`\s+([^;]+);`).FindAllStringSubmatch(readFile(t, "../../deploy/compose/nginx.conf"), -1)
	if len(m) != 1 {
		t.Fatalf("%s occurs %d times in nginx.conf", name, len(m))
	}
	return m[0][1]
}

// The balancer must wait for longer than a claim does, hold nothing back, and never be the last to close a connection.
func TestBalancerFitsTheServer(t *testing.T) {
	if d := composeDuration(t, nginxSetting(t, "proxy_read_timeout")); d < queues.MaxClaimWait+10*time.Second {
		t.Errorf("it waits for %v, and a claim for up to %v", d, queues.MaxClaimWait)
	}
	if d := composeDuration(t, nginxSetting(t, "keepalive_timeout")); d >= api.DefaultIdleTimeout {
		t.Errorf("it keeps idle connections for %v, and a server for %v", d, api.DefaultIdleTimeout)
	}
	if d := composeDuration(t, nginxSetting(t, "proxy_connect_timeout")); d > 5*time.Second {
		t.Errorf("it waits for %v before it goes to another replica", d)
	}
	for name, want := range map[string]string{"proxy_buffering": "off", "proxy_request_buffering": "off", "proxy_http_version": "1.1",
		"proxy_set_header Connection": `""`} {
		if got := nginxSetting(t, name); got != want {
			t.Errorf("%s is %s, and should be %s", name, got, want)
		}
	}
	if f, _ := config.Lookup("listen"); !strings.HasSuffix(f.Default, ":"+nginxSetting(t, "listen")) {
		t.Errorf("it listens on %s, and the default is %s", nginxSetting(t, "listen"), f.Default)
	}
}

// The systemd unit gives the program the time that it takes to stop, and as many files as it may have connections.
func TestSystemdUnitFitsTheSettings(t *testing.T) {
	text := readFile(t, "../../deploy/systemd/lubdub.service")
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the unit does not set %s", name)
		}
		return m[1]
	}
	cfg := loaded(t, nil)
	if grace, needed := composeDuration(t, value("TimeoutStopSec")), cfg.DrainDelay+shutdownTimeout; grace <= needed {
		t.Errorf("it is killed %v after SIGTERM, and may take %v", grace, needed)
	}
	if files, err := strconv.Atoi(value("LimitNOFILE")); err != nil || files < cfg.MaxConnections+api.SpareConnections {
		t.Errorf("it may have %d files (%v), and %d connections", files, err, cfg.MaxConnections)
	}
}
