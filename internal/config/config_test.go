package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lubdub.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every field, every source: each one must win over those below it and give way to those above.
func TestPrecedence(t *testing.T) {
	// Four different legal values for each field, from the weakest source to the strongest.
	values := map[string][4]string{
		"redis":                     {"redis://a", "redis://b", "redis://c", "redis://d"},
		"redis-timeout":             {"2s", "3s", "4s", "5s"},
		"shards":                    {"1", "2", "3", "4"},
		"health-check-period":       {"5s", "6s", "7s", "8s"},
		"finished-retention":        {"3h", "4h", "5h", "6h"},
		"events-per-shard":          {"101", "102", "103", "104"},
		"roles":                     {"api", "sweeper", "api,sweeper", "api"},
		"listen":                    {":1", ":2", ":3", ":4"},
		"admin-listen":              {":11", ":12", ":13", ":14"},
		"admin-hosts":               {"a", "b,c", "d", "e.f"},
		"public-url":                {"http://a", "http://b", "http://c", "http://d"},
		"logs-url":                  {"http://a", "http://b/{taskId}", "https://c?q={workerId}&from={fromMs}&to={toMs}", "http://d/#{from}"},
		"oidc-file":                 {"/a", "/b", "/c", "/d/e"},
		"max-connections":           {"11", "12", "13", "14"},
		"token-cache-size":          {"11", "12", "13", "14"},
		"tenant-beats-per-second":   {"11", "12", "13", "14"},
		"tenant-calls-per-second":   {"11", "12", "13", "14"},
		"tenant-live-tasks":         {"11", "12", "13", "14"},
		"tenant-stored-bytes":       {"11", "12", "13", "14"},
		"tenant-workers":            {"11", "12", "13", "14"},
		"tls-cert-file":             {"/a", "/b", "/c", "/d"},
		"tls-key-file":              {"/a", "/b", "/c", "/d"},
		"tls-client-ca-file":        {"/a", "/b", "/c", "/d"},
		"admin-tls":                 {"on", "off", "on", "off"},
		"redis-tls-ca-file":         {"/a", "/b", "/c", "/d"},
		"redis-tls-cert-file":       {"/a", "/b", "/c", "/d"},
		"redis-tls-key-file":        {"/a", "/b", "/c", "/d"},
		"redis-tls-server-name":     {"a", "b", "c", "d"},
		"signing-keys-file":         {"/a", "/b", "/c", "/d"},
		"worker-heartbeat-interval": {"1s", "2s", "3s", "4s"},
		"worker-timeout-multiplier": {"2", "4", "5", "6"},
		"durability":                {"fsync", "replicated", "fsync", "replicated"},
		"durable-replicas":          {"2", "3", "4", "5"},
		"worker-probe":              {"public", "any", "public", "any"},
		"mass-expiry-brake":         {"on", "on", "off", "on"},
		"webhook-allow-cidrs":       {"10.0.0.0/8", "10.0.0.0/9,::1/128", "10.0.0.0/10", "10.0.0.0/11"},
		"webhooks-file":             {"/a", "/b", "/c", "/d"},
		"drain-delay":               {"1s", "2s", "3s", "4s"},
		"log-level":                 {"debug", "warn", "error", "debug"},
		"log-format":                {"json", "text", "json", "text"},
	}
	for _, f := range Fields() {
		if f.EnvOnly {
			continue
		}
		v, ok := values[f.Name]
		if !ok {
			t.Errorf("%s has no values in this test; add four: for the default, the file, the variable and the flag", f.Name)
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			flags := Default()
			if err := f.set(flags, v[3]); err != nil {
				t.Fatal(err)
			}
			in := Input{Defaults: map[string]string{f.Name: v[0]}}
			if f.Group == "TLS" { // what these settings may not be without
				in.Defaults = map[string]string{"tls-cert-file": "/x", "tls-key-file": "/x", "redis": "rediss://x", "redis-tls-cert-file": "/x",
					"redis-tls-key-file": "/x"}
				in.Defaults[f.Name] = v[0]
			}
			want := func(layer Layer, text, where string) {
				t.Helper()
				got, err := Load(in)
				if err != nil {
					t.Fatal(err)
				}
				if got := f.Text(&got.Config); got != text {
					t.Errorf("layer %d: %q, want %q", layer, got, text)
				}
				if s := got.Source(f.Name); s.Layer != layer || !strings.HasSuffix(s.Where, where) {
					t.Errorf("layer %d: source %+v, want it to end in %q", layer, s, where)
				}
			}
			want(FromDefault, v[0], "")
			in.File = file(t, "# a comment\n"+f.Name+": "+v[1]+"\n")
			want(FromFile, v[1], "lubdub.yaml:2")
			in.Environ = []string{f.Env + "=" + v[2]}
			want(Environment, v[2], f.Env)
			in.Flags, in.FlagsSet = flags, []string{f.Name}
			want(FromFlag, v[3], "--"+f.Name)

			// And without the layers in between.
			in.Environ, in.FlagsSet = []string{f.Env + "="}, nil
			want(FromFile, v[1], "lubdub.yaml:2")
			in.File, in.FlagsSet = "", []string{f.Name}
			want(FromFlag, v[3], "--"+f.Name)
		})
	}
}

func TestFileNamedByEnvironment(t *testing.T) {
	path := file(t, "shards: 7\n")
	l, err := Load(Input{Environ: []string{"LUBDUB_CONFIG=" + path}})
	if err != nil || l.Shards != 7 || l.File != path {
		t.Fatalf("%+v, %v", l, err)
	}
	other := file(t, "shards: 8\n")
	l, err = Load(Input{File: other, Environ: []string{"LUBDUB_CONFIG=" + path}})
	if err != nil || l.Shards != 8 {
		t.Fatalf("the flag's file must win: %+v, %v", l, err)
	}
}

func TestYAMLForms(t *testing.T) {
	_, err := Load(Input{File: file(t, "roles:\n  - sweeper\n  - api\nlisten: '0.0.0.0:80'\nshards: 0x10\n---\n")})
	if err == nil || !strings.Contains(err.Error(), "shards") || !strings.Contains(err.Error(), ":5") {
		t.Errorf("hexadecimal: %v", err)
	}
	l, err := Load(Input{File: file(t, "roles: [sweeper]\nlisten: \"0.0.0.0:80\"\nshards: 16\ndrain-delay: 1m30s\n")})
	if err != nil {
		t.Fatal(err)
	}
	if l.Roles != (Roles{Sweeper: true}) || l.Listen != "0.0.0.0:80" || l.Shards != 16 || l.DrainDelay != 90*time.Second {
		t.Errorf("%+v", l.Config)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "~\n"} {
		if l, err := Load(Input{File: file(t, empty)}); err != nil || !reflect.DeepEqual(&l.Config, Default()) {
			t.Errorf("%q: %+v %v", empty, l, err)
		}
	}
}

// Each mistake is reported in one line, with its place and, if there is one, the remedy.
func TestRefused(t *testing.T) {
	type check struct {
		name string
		in   func(t *testing.T) Input
		want []string
	}
	yaml := func(text string) func(*testing.T) Input {
		return func(t *testing.T) Input { return Input{File: file(t, text)} }
	}
	env := func(pairs ...string) func(*testing.T) Input {
		return func(*testing.T) Input { return Input{Environ: pairs} }
	}
	for _, c := range []check{
		{"unknown key", yaml("redis: redis://x\nlisen: ':1'\n"), []string{`lubdub.yaml:2: there is no setting "lisen"; did you mean listen?`}},
		{"strange key", yaml("qqqqqqqqqqqqqqqqqq: 1\n"), []string{`lubdub.yaml:1: there is no setting "qqqqqqqqqqqqqqqqqq"`}},
		{"twice", yaml("shards: 1\nshards: 2\n"), []string{"lubdub.yaml:2: shards was set in line 1 already"}},
		{"nested", yaml("redis:\n  url: redis://x\n"), []string{"lubdub.yaml:1: redis: the value must be plain text"}},
		{"no value", yaml("redis:\n"), []string{"lubdub.yaml:1: redis: no value is given"}},
		{"a list", yaml("- 1\n"), []string{"lubdub.yaml:1: a configuration is a list of lines"}},
		{"list of lists", yaml("roles: [[api]]\n"), []string{"roles: the value is a list of lists"}},
		{"two documents", yaml("shards: 1\n---\nshards: 2\n"), []string{"lubdub.yaml:3: a second document"}},
		{"not YAML", yaml("shards: 1\nredis: \"redis://:geheim@x\n"), []string{"lubdub.yaml:2: not YAML"}},
		{"keys in the file", yaml("signing-keys: a=geheim\n"), []string{"signing-keys does not belong into this file", "LUBDUB_SIGNING_KEYS"}},
		{"no file", func(t *testing.T) Input { return Input{File: filepath.Join(t.TempDir(), "none.yaml")} },
			[]string{"configuration file:", "none.yaml"}},
		{"unknown variable", env("LUBDUB_LISTN=:1", "PATH=/bin"), []string{"environment: there is no setting LUBDUB_LISTN; did you mean " +
			"LUBDUB_LISTEN?"}},
		{"a guess", env("LUBDUB_PORT=8080"), []string{"there is no setting LUBDUB_PORT"}},
		{"several at once", env("LUBDUB_LISTN=:1", "LUBDUB_SHARDS=x", "LUBDUB_LOG_LEVEL=inof"),
			[]string{"LUBDUB_LISTN", `shards (environment LUBDUB_SHARDS): "x" is not a whole number`,
				`log-level (environment LUBDUB_LOG_LEVEL): "inof" is not one of debug, info, warn, error; did you mean info?`}},
		{"no unit", yaml("drain-delay: 30\n"), []string{`drain-delay (file `,
			`lubdub.yaml:1): "30" has no unit; write for example 30s`}},
		{"no duration", env("LUBDUB_DRAIN_DELAY=soon"), []string{`"soon" is not a duration`}},
		{"below", env("LUBDUB_FINISHED_RETENTION=1h"), []string{"finished-retention (environment LUBDUB_FINISHED_RETENTION): 1h is below 2h5m"}},
		{"above", env("LUBDUB_SHARDS=5000"), []string{"5000 is above 4096"}},
		{"negative", env("LUBDUB_SHARDS=-1"), []string{"-1 is below 0"}},
		{"neither the default nor enough", env("LUBDUB_EVENTS_PER_SHARD=99"), []string{
			"events-per-shard (environment LUBDUB_EVENTS_PER_SHARD): 99 is below 100; give more, or 0 for as many as suit the shards"}},
		{"zero", env("LUBDUB_REDIS_TIMEOUT=0s"), []string{"0s is below 50ms"}},
		{"half a certificate", env("LUBDUB_TLS_CERT_FILE=/c"), []string{"tls-cert-file (environment LUBDUB_TLS_CERT_FILE) and tls-key-file " +
			"(default) go together"}},
		{"half a certificate for Redis", env("LUBDUB_REDIS=rediss://x", "LUBDUB_REDIS_TLS_KEY_FILE=/k"),
			[]string{"redis-tls-cert-file (default) and redis-tls-key-file"}},
		{"clients' CA without TLS", env("LUBDUB_TLS_CLIENT_CA_FILE=/c"),
			[]string{"tls-client-ca-file (environment LUBDUB_TLS_CLIENT_CA_FILE) needs tls-cert-file"}},
		{"admin TLS without a certificate", env("LUBDUB_ADMIN_TLS=on"), []string{"admin-tls (environment LUBDUB_ADMIN_TLS) needs tls-cert-file"}},
		{"TLS to a plain Redis", env("LUBDUB_REDIS_TLS_CA_FILE=/c"),
			[]string{"redis-tls-ca-file (environment LUBDUB_REDIS_TLS_CA_FILE) is set, but redis (default) does not begin with rediss"}},
		{"no such role", env("LUBDUB_ROLES=api,weeper"), []string{`there is no role "weeper"`}},
		{"no role", env("LUBDUB_ROLES=,"), []string{"no role is named"}},
		{"no port", env("LUBDUB_LISTEN=localhost"), []string{`"localhost" is not an address`}},
		{"bad port", env("LUBDUB_LISTEN=localhost:99999"), []string{"no port between 0 and 65535"}},
		{"same address", env("LUBDUB_LISTEN=:1", "LUBDUB_ADMIN_LISTEN=:1"), []string{"listen and admin-listen are both :1"}},
		{"admin name", env("LUBDUB_ADMIN_HOSTS=ok,http://x"), []string{"admin-hosts (environment LUBDUB_ADMIN_HOSTS)",
			`"http://x" is not a name`}},
		{"public URL", env("LUBDUB_PUBLIC_URL=example.com"), []string{`"example.com" is not a base URL`}},
		{"public URL with slash", env("LUBDUB_PUBLIC_URL=http://example.com/"), []string{"must not end in a slash"}},
		{"public URL with query", env("LUBDUB_PUBLIC_URL=http://example.com?x=1"), []string{"no user, query or fragment"}},
		{"base path with dots", env("LUBDUB_PUBLIC_URL=http://x/a/.."), []string{"is not a path"}},
		{"base path of ours", env("LUBDUB_PUBLIC_URL=http://x/v1/x"), []string{"begins like a path of the API"}},
		{"logs of a script", env("LUBDUB_LOGS_URL=javascript://x/{taskId}"), []string{"is not the URL of a page"}},
		{"logs with a password", env("LUBDUB_LOGS_URL=https://a:b@x/{taskId}"), []string{"is not the URL of a page"}},
		{"logs with an open brace", env("LUBDUB_LOGS_URL=https://x/{taskId"), []string{"has a brace that is no part of a placeholder"}},
		{"logs of something unknown", env("LUBDUB_LOGS_URL=https://x/{task}"),
			[]string{"logs-url (environment LUBDUB_LOGS_URL): there is no placeholder {task}; use {tenantId}, "}},
		{"redis", env("LUBDUB_REDIS=:geheim@host:6379"), []string{"redis (environment LUBDUB_REDIS): not a URL of Redis"}},
		{"half a process with an embedded Redis", env("LUBDUB_REDIS=embedded", "LUBDUB_ROLES=sweeper"),
			[]string{"an embedded Redis (environment LUBDUB_REDIS) serves only its own process, which needs the roles api,sweeper and not sweeper"}},
		{"durability of an embedded Redis", env("LUBDUB_REDIS=embedded", "LUBDUB_DURABILITY=fsync"),
			[]string{"keeps nothing, so durability cannot be fsync (environment LUBDUB_DURABILITY)"}},
		{"no such durability", env("LUBDUB_DURABILITY=replicate"), []string{`"replicate" is not one of memory, fsync, replicated`}},
		{"two places for keys", env("LUBDUB_SIGNING_KEYS=a=geheim", "LUBDUB_SIGNING_KEYS_FILE=/x"),
			[]string{"signing keys come from two places"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Load(c.in(t))
			if err == nil {
				t.Fatalf("accepted: %+v", l.Config)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if len(c.want) == 1 && len(Problems(err)) != 1 {
				t.Errorf("one mistake, %d problems: %q", len(Problems(err)), Problems(err))
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("the error shows a secret: %q", err)
			}
		})
	}
}

// Kubernetes sets these in a pod in the namespace of a Service called lubdub.
func TestKubernetesVariablesPass(t *testing.T) {
	_, err := Load(Input{Environ: []string{
		"LUBDUB_SERVICE_HOST=10.0.0.7", "LUBDUB_SERVICE_PORT=8080", "LUBDUB_SERVICE_PORT_HTTP=8080", "LUBDUB_PORT=tcp://10.0.0.7:8080",
		"LUBDUB_PORT_8080_TCP=tcp://10.0.0.7:8080", "LUBDUB_PORT_8080_TCP_PROTO=tcp", "LUBDUB_PORT_8080_TCP_PORT=8080",
		"LUBDUB_PORT_8080_TCP_ADDR=10.0.0.7",
		"LUBDUB_API_SERVICE_HOST=10.0.0.8", "LUBDUB_API_PORT=udp://10.0.0.8:1", "LUBDUB_API_PORT_1_UDP_PORT=1",
	}})
	if err != nil {
		t.Error(err)
	}
}

// Settings that were removed are accepted in every source, have no effect, and are named once each. None of them is a setting.
func TestRemovedSettings(t *testing.T) {
	var text strings.Builder
	var environ, flags []string
	for name := range removed {
		text.WriteString(name + ": none of the old values\n")
		environ = append(environ, envOf(name)+"=none of the old values")
		flags = append(flags, name)
		if f, ok := Lookup(name); ok || removed[name] == "" {
			t.Errorf("%s is a setting (%+v), or has no replacement text", name, f)
		}
	}
	path := file(t, text.String())
	for layer, in := range map[Layer]Input{FromFile: {File: path}, Environment: {File: path, Environ: environ},
		FromFlag: {File: path, Environ: environ, FlagsSet: flags}} {
		l, err := Load(in)
		if err != nil || !reflect.DeepEqual(&l.Config, Default()) {
			t.Fatalf("from layer %d: %v, %+v", layer, err, l.Config)
		}
		if got := l.Removed(); len(got) != len(removed) || got[0].Source.Layer != layer || got[0].Instead != removed[got[0].Name] {
			t.Errorf("from layer %d: %+v", layer, got)
		}
	}
	if l, err := Load(Input{Environ: []string{"LUBDUB_EVENT_LOOP="}}); err != nil || len(l.Removed()) > 0 {
		t.Errorf("an empty variable counts as set: %v", err)
	}
}

// No setting may be lost between the struct and any of its uses.
func TestEveryFieldIsComplete(t *testing.T) {
	groups := []string{}
	for _, f := range Fields() {
		if f.Name == "" || f.Help == "" || f.Zero == "" || f.Group == "" {
			t.Errorf("%+v lacks name, help, zero or group", f)
		}
		if !strings.HasSuffix(f.Who, ".") || strings.Contains(strings.TrimSuffix(f.Who, "."), ". ") {
			t.Errorf("%s must have one sentence about who sets it and why, got %q", f.Name, f.Who)
		}
		if (f.Unit != "") != (f.Min != "" && f.Max != "") {
			t.Errorf("%s: a number needs both bounds, and nothing else has any", f.Name)
		}
		if f.Zero == "refused" {
			zero := Default()
			reflect.ValueOf(zero).Elem().Field(f.index).SetZero()
			l := &Loaded{Config: *zero}
			if len(l.validate()) == 0 && f.Name != "roles" { // an empty role is refused when it is parsed
				t.Errorf("the help of %s states that zero is refused, and it is not", f.Name)
			}
		}
		if len(groups) == 0 || groups[len(groups)-1] != f.Group {
			groups = append(groups, f.Group)
		}
	}
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(groups) {
		t.Errorf("settings of one group must be adjacent: %v", groups)
	}
	if l := (&Loaded{Config: *Default()}); len(l.validate()) > 0 {
		t.Errorf("the defaults are refused: %v", l.validate())
	}
}
