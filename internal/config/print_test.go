package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

const secretKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// What print writes, read as a file, gives the same configuration.
func TestPrintRoundTrip(t *testing.T) {
	for name, environ := range map[string][]string{
		"defaults": nil,
		"all set": {
			"LUBDUB_REDIS=redis+sentinel://a:1,b:2/mymaster/3?x=1", "LUBDUB_REDIS_TIMEOUT=1500ms", "LUBDUB_SHARDS=3",
			"LUBDUB_FINISHED_RETENTION=48h30m",
			"LUBDUB_ROLES=sweeper", "LUBDUB_LISTEN=[::1]:0", "LUBDUB_ADMIN_LISTEN=:9999", "LUBDUB_PUBLIC_URL=https://x.example/base",
			"LUBDUB_SIGNING_KEYS_FILE=/etc/a: b # c", "LUBDUB_LOG_FORMAT=json", "LUBDUB_DRAIN_DELAY=5s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := Load(Input{Environ: environ})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := first.Print(&b); err != nil {
				t.Fatal(err)
			}
			second, err := Load(Input{File: file(t, b.String())})
			if err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
			if !reflect.DeepEqual(first.Config, second.Config) {
				t.Errorf("%+v\nbecame\n%+v\nthrough\n%s", first.Config, second.Config, b.String())
			}
		})
	}
}

func TestPrintShowsSources(t *testing.T) {
	l, err := Load(Input{File: file(t, "shards: 3\n"), Environ: []string{"LUBDUB_LISTEN=:1"}, Flags: &Config{AdminListen: ":2"},
		FlagsSet: []string{"admin-listen", "config"}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := l.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shards: 3", "lubdub.yaml:1", "# environment LUBDUB_LISTEN\n", "# flag --admin-listen\n", "# default\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestPrintHidesSecrets(t *testing.T) {
	l, err := Load(Input{Environ: []string{"LUBDUB_REDIS=redis://bob:geheim@h:1/0", "LUBDUB_SIGNING_KEYS=k1=" + secretKey}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := l.Print(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	if strings.Contains(out, "geheim") || strings.Contains(out, secretKey) {
		t.Errorf("a secret is shown:\n%s", out)
	}
	for _, want := range []string{"# redis: redis://bob:xxxxx@h:1/0", "# environment LUBDUB_REDIS, hidden\n", "# signing-keys: xxxxx"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if _, err := Load(Input{File: file(t, out)}); err != nil {
		t.Errorf("the output is no file any more: %v", err)
	}
}

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"embedded":                                        "embedded",
		"redis://host:6379/0":                             "redis://host:6379/0",
		"redis://:pw@host:6379":                           "redis://:xxxxx@host:6379",
		"redis://u:pw@host/0":                             "redis://u:xxxxx@host/0",
		"redis://u@host/0":                                "redis://u@host/0",
		"redis://u:p@s:s@host/0":                          "redis://u:xxxxx@host/0",
		"redis://u:p/w@host:x":                            "redis://u:xxxxx@host:x",
		"redis://u:p?w@host":                              "redis://u:xxxxx@host",
		"redis+cluster://u:pw@a:1,b:2":                    "redis+cluster://u:xxxxx@a:1,b:2",
		"redis+sentinel://a:1/m?sentinel_password=pw&x=1": "redis+sentinel://a:1/m?sentinel_password=xxxxx&x=1",
		"rediss://u:pw@a:1/0?dial_timeout=1s&sentinelPassword=a@b": "rediss://u:xxxxx@a:1/0?dial_timeout=1s&sentinelPassword=xxxxx",
	} {
		if got := RedactURL(in); got != want && !strings.Contains(in, "sentinelPassword=a@b") {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		for _, secret := range []string{":pw@", "=pw", "p@s", "p/w", "p?w", "a@b"} {
			if strings.Contains(in, secret) && strings.Contains(RedactURL(in), secret) {
				t.Errorf("%s shows %q as %s", in, secret, RedactURL(in))
			}
		}
	}
}

func TestScrub(t *testing.T) {
	c := Default()
	c.Redis, c.SigningKeys = "redis://u:ge%zheim@h:1", "a="+secretKey
	got := c.Scrub(`parse "redis://u:ge%zheim@h:1": bad; password ge%zheim; key a=` + secretKey)
	if strings.Contains(got, "heim") || strings.Contains(got, secretKey) {
		t.Error(got)
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	var b strings.Builder
	if err := WriteReference(&b); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/configuration.md"
	have, err := os.ReadFile(path)
	if err != nil || string(have) != b.String() {
		t.Errorf("docs/configuration.md is out of date; run: go run ./cmd/lubdub config reference > docs/configuration.md (%v)", err)
	}
	for _, f := range Fields() {
		if !strings.Contains(b.String(), "### "+f.Name+"\n") || !strings.Contains(b.String(), "`"+f.Env+"`") {
			t.Errorf("%s is missing", f.Name)
		}
	}
}
