package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/embedded"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A flag of all commands would hide a command's own flag of that name.
func TestNoFlagOfACommandIsHidden(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.NamedMapper("setting", kong.MapperFunc((&app{}).parseSetting)))
	if err != nil {
		t.Fatal(err)
	}
	common := map[string]bool{}
	for _, f := range parser.Model.Flags {
		common[f.Name] = true
	}
	flags := 0
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok && n.Type == kong.CommandNode {
			for _, f := range n.Flags {
				if flags++; common[f.Name] {
					t.Errorf("%s: --%s is hidden by the flag of all commands", n.FullPath(), f.Name)
				}
			}
		}
		return next(nil)
	})
	if flags < 100 || !common["help"] {
		t.Errorf("%d flags, common ones %v", flags, common)
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		args    string
		code    int
		stdout  string // a part
		stderr  string
	}{
		{"nothing", nil, "", exitOK, "Usage: lubdub <command>", ""},
		{"help", nil, "serve --help", exitOK, "LUBDUB_ADMIN_LISTEN", ""},
		{"version", nil, "version", exitOK, "lubdub " + release + " (", ""},
		{"version as a flag", nil, "--version", exitOK, "lubdub " + release + " (", ""},
		{"help as a command", nil, "help", exitOK, "Usage: lubdub <command>", ""},
		{"help for a command", nil, "help config check", exitOK, "Usage: lubdub config check", ""},
		{"help for no command", nil, "help srve", exitMistake, "", `did you mean "serve"`},
		{"no such command", nil, "srve", exitMistake, "", `did you mean "serve"`},
		{"the verb first", nil, "drain workers --queue mail", exitMistake, "", "the noun comes first: 'lubdub worker drain'"},
		{"the verb alone", nil, "drain", exitMistake, "", "Run 'lubdub --help' for usage."},
		{"no such flag", nil, "serve --lisen :1", exitMistake, "", "unknown flag --lisen"},
		{"keys are no flag", nil, "serve --signing-keys k=x", exitMistake, "", "unknown flag --signing-keys"},
		{"bad flag", nil, "serve --drain-delay 30", exitMistake, "", `"30" has no unit; write for example 30s`},
		{"flag out of bounds", []string{"LUBDUB_SIGNING_KEYS=" + testKey}, "serve --shards 9999", exitMistake, "",
			"shards (flag --shards): 9999 is above 4096"},
		{"bad variable", []string{"LUBDUB_SHRADS=1"}, "serve", exitMistake, "", "there is no setting LUBDUB_SHRADS; did you mean LUBDUB_SHARDS?"},
		{"no key", nil, "serve", exitMistake, "", `export LUBDUB_SIGNING_KEYS="k1=$(openssl rand -base64 32)"`},
		{"short key", []string{"LUBDUB_SIGNING_KEYS=k1=c2hvcnQ="}, "serve", exitMistake, "", "signing key k1 has 5 bytes; it needs at least 32"},
		{"check good", []string{"LUBDUB_SIGNING_KEYS=" + testKey}, "config check", exitOK, "the configuration is good", ""},
		{"check without key", nil, "config check", exitMistake, "", "there is no signing key"},
		{"check a sweeper", nil, "config check --roles sweeper", exitOK, "good", ""},
		{"check bad", []string{"LUBDUB_LOG_LEVEL=loud"}, "config check --listen nowhere", exitMistake, "", "lubdub: log-level"},
		{"print flag over variable", []string{"LUBDUB_SHARDS=3"}, "config print --shards 4", exitOK, "# flag --shards", ""},
		{"print variable", []string{"LUBDUB_SHARDS=3"}, "config print", exitOK, "# environment LUBDUB_SHARDS", ""},
		{"token without role", nil, "token", exitMistake, "", "--role"},
		{"token without key", nil, "token --role admin", exitMistake, "", "there is no signing key"},
		{"token of no role, and no key", nil, "token --role king", exitMistake, "", `unknown role "king"; use one of viewer, `},
		{"token of no tenant, and no key", nil, "token --role admin --tenant a/b", exitMistake, "", `the tenant "a/b" is neither`},
		{"token of a submitter", []string{"LUBDUB_SIGNING_KEYS=" + testKey}, "token --role submitter", exitOK, "eyJ", ""},
		{"roles of tokens", nil, "token --help", exitOK, "viewer, submitter,", ""},
		{"token of an empty queue", []string{"LUBDUB_SIGNING_KEYS=" + testKey}, "token --role enroll --queue=", exitMistake, "",
			"--queue is empty; give it a value, or omit it"},
		{"an act with an empty filter", nil, "task cancel --queue= --state RUNNING -y", exitMistake, "", "--queue is empty"},
		{"token of no role", []string{"LUBDUB_SIGNING_KEYS=" + testKey}, "token --role king", exitMistake, "", `unknown role "king"`},
		{"dev: check without fleet", nil, "dev --check --no-fleet", exitMistake, "", "cannot be used with --no-fleet"},
		{"dev: half of the roles", nil, "dev --roles api --redis redis://x", exitMistake, "", "its roles are api,sweeper"},
		{"dev: no rate", nil, "dev --rate 0", exitMistake, "", "--rate 0 is not"},
		{"health without a server", nil, "health --url http://127.0.0.1:1/readyz", exitFailed, "", "connection refused"},
		{"health without a server names the next step", nil, "health --url http://127.0.0.1:1", exitFailed, "", "'lubdub serve' starts one"},
		{"health of a base URL without a listener", nil, "health --url http://127.0.0.1:1", exitFailed, "", "http://127.0.0.1:1/readyz"},
		{"health of no URL", nil, "health --url 127.0.0.1:9090", exitMistake, "", "write for example http://127.0.0.1:9090"},
		{"health of another scheme", nil, "health --url redis://127.0.0.1:9090", exitMistake, "", "write for example http://"},
		{"health of an unknown port", []string{"LUBDUB_ADMIN_LISTEN=:0"}, "health", exitMistake, "", "name the page with --url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := command(c.environ, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("%d, want %d\nstdout: %s\nstderr: %s", code, c.code, stdout, stderr)
			}
			if c.stderr == "" && stderr != "" || c.stdout == "" && stdout != "" {
				t.Errorf("unexpected output\nstdout: %s\nstderr: %s", stdout, stderr)
			}
		})
	}
}

// All mistakes are reported together, so that a configuration is repaired in one step: unknown flags, invalid values, bounds, the
// environment, the file, keys and certificates.
func TestConfigCheckReportsEveryMistakeAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lubdub.yaml")
	if err := os.WriteFile(file, []byte("durability: forever\nport: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command([]string{"LUBDUB_SHRADS=1", "LUBDUB_LOG_LEVEL=loud"}, "config", "check", "--config", file,
		"--lisen", ":1", "--drain-delay", "30", "--shards=9999", "--redis-timeout=soon", "--no-such",
		"--tls-cert-file", "/nowhere.crt", "--tls-key-file", "/nowhere.key", "--admin-listen", "nowhere",
		"--redis", "rediss://127.0.0.1:6379/0", "--redis-tls-ca-file", "/nowhere.ca")
	if code != exitMistake || stdout != "" {
		t.Error(code, stdout)
	}
	for _, want := range []string{
		"unknown flag --lisen, did you mean \"--listen\"?", "unknown flag --no-such",
		`drain-delay (flag --drain-delay): "30" has no unit`, "shards (flag --shards): 9999 is above 4096",
		`redis-timeout (flag --redis-timeout): "soon"`,
		"there is no setting LUBDUB_SHRADS; did you mean LUBDUB_SHARDS?", `log-level (environment LUBDUB_LOG_LEVEL): "loud"`,
		`durability (file ` + file + `:1): "forever"`, `lubdub.yaml:2: there is no setting "port"`,
		`admin-listen (flag --admin-listen): "nowhere"`,
		"there is no signing key", "files of the listeners: stat /nowhere.crt", "files for Redis: open /nowhere.ca",
	} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("%q does not occur once in\n%s", want, stderr)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		if !strings.HasPrefix(line, "lubdub: ") && !strings.Contains(stderr, "LUBDUB_SIGNING_KEYS") {
			t.Errorf("not a separate line: %q", line)
		}
	}
}

// An invalid value of any flag hides nothing: it is reported once, with the other mistakes.
func TestConfigCheckReportsMistakesOfEveryFlag(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := command([]string{"LUBDUB_SIGNING_KEYS=" + testKey},
			slices.Concat([]string{"config", "check"}, args, []string{"--max-connections", "some"})...)
		if code != exitMistake || stdout != "" || strings.Count(stderr, want) != 1 || !strings.Contains(stderr, `"some" is not a whole number`) {
			t.Errorf("%q: %d, does not occur once: %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	for _, f := range config.Fields() {
		flag, prefix := "--"+f.Name, f.Name+" (flag --"+f.Name+"): "
		switch {
		case f.EnvOnly || f.Name == "max-connections":
			continue
		case len(f.Enum) > 0:
			check(prefix+`"x" is not one of `, flag, "x")
		case f.Unit == "count":
			check(prefix+"-3 is below ", flag, "-3")
			check(prefix+`"many" is not a whole number`, flag, "many")
		case f.Unit == "duration":
			check(prefix+"-3s is below ", flag, "-3s")
			check(prefix+`"3" has no unit`, flag, "3")
		}
		check(prefix+"it has no value", flag)
	}
	check("config (flag --config): it has no value", "--config")
	check("unexpected argument stray", "stray")
	code, _, stderr := command(nil, "config", "check", "--listen", "nope", "--durability", "x", "--log-level", "y", "stray", "--shards", "-3",
		"--no-such", "--redis")
	for _, want := range []string{`"nope"`, `durability (flag --durability): "x"`, `log-level (flag --log-level): "y"`,
		"unexpected argument stray", "-3 is below", "unknown flag --no-such", "redis (flag --redis): it has no value",
		"there is no signing key"} {
		if code != exitMistake || strings.Count(stderr, want) != 1 {
			t.Errorf("%q does not occur once in\n%s", want, stderr)
		}
	}
}

// No command may run with a flag that it does not know, or with a value that it could not read.
func TestMistakenFlagsRunNothing(t *testing.T) {
	for _, args := range []string{
		"version --no-such", "config reference --no-such", "config print --shards many", "config print --no-such=1",
		"token --role admin --no-such x",
		"dev --shards many --for 1ms", "serve --shards many", "health --no-such", "plan --no-such", "help --no-such", "dev --durability many",
		"serve --no-such --shards", "token --role admin --no-such --signing-keys-file",
	} {
		code, stdout, stderr := command([]string{"LUBDUB_SIGNING_KEYS=" + testKey}, strings.Fields(args)...)
		if code != exitMistake || stdout != "" || !strings.Contains(stderr, "many") && !strings.Contains(stderr, "unknown flag --no-such") {
			t.Errorf("%s: %d, %s, %s", args, code, stdout, stderr)
		}
	}
}

func TestReferenceIsTheDocument(t *testing.T) {
	code, stdout, _ := command(nil, "config", "reference")
	document, err := os.ReadFile("../../docs/configuration.md")
	if code != exitOK || err != nil || stdout != string(document) {
		t.Errorf("docs/configuration.md is out of date; run: make generate (%v)", err)
	}
}

// Words are in tags, where constants cannot be used.
func TestTagsAgreeWithConstants(t *testing.T) {
	shards, _ := config.Lookup("shards")
	if !strings.Contains(shards.Zero, fmt.Sprintf("%d in an embedded Redis", embedded.Shards)) {
		t.Errorf("the help of shards names another number than %d", embedded.Shards)
	}
	if durability, _ := config.Lookup("durability"); durability.Default != string(store.Memory) { // kong needs one for its enum
		t.Errorf("durability is %s where nothing is set, and %s where tracker is left to choose", durability.Default, store.Memory)
	}
	delay, _ := config.Lookup("drain-delay")
	if !strings.Contains(delay.Help, fmt.Sprintf("%.0f s to end", shutdownTimeout.Seconds())) {
		t.Errorf("the help of drain-delay names another time than %v", shutdownTimeout)
	}
}

func TestTokenPrintsOnlyTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		environ []string
		args    []string
	}{
		{[]string{"LUBDUB_SIGNING_KEYS=" + testKey}, nil},
		{nil, []string{"--signing-keys-file", file}},
		{[]string{"LUBDUB_SIGNING_KEYS_FILE=" + file}, nil},
	} {
		code, stdout, stderr := command(c.environ, append([]string{"token", "--role", "viewer", "--tenant", "acme", "--workspace", "*", "--ttl",
			"90m"}, c.args...)...)
		if code != exitOK || stderr != "" || !regexp.MustCompile(`^[\w-]+\.[\w-]+\.[\w-]+\n$`).MatchString(stdout) {
			t.Fatalf("%d %q %q", code, stdout, stderr)
		}
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(stdout), claims); err != nil {
			t.Fatal(err)
		}
		expires, _ := claims.GetExpirationTime()
		issued, _ := claims.GetIssuedAt()
		if life := expires.Sub(issued.Time); life != 90*time.Minute {
			t.Errorf("it holds for %v", life)
		}
	}
}

// A key that is written wrongly must not appear on the terminal or in the log.
func TestKeysAreNeverQuoted(t *testing.T) {
	const secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U"
	for _, keys := range []string{secret + "=", secret, "k1=" + secret[:20], "k1=!!" + secret, "a b=" + secret, secret + "=x",
		"k1=" + secret + "=,k1=" + secret + "="} {
		code, stdout, stderr := command([]string{"LUBDUB_SIGNING_KEYS=" + keys}, "token", "--role", "admin")
		if code != exitMistake || strings.Contains(stdout+stderr, secret[:12]) {
			t.Errorf("%s: %d %q %q", keys, code, stdout, stderr)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{empty: "empty is empty; write <kid>=", filepath.Join(dir, "none"): "no such file"} {
		code, _, stderr := command(nil, "config", "check", "--signing-keys-file", path)
		if code != exitMistake || !strings.Contains(stderr, want) {
			t.Errorf("%d %s", code, stderr)
		}
	}
}
