package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

func TestOperatorCompletion(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	d.ok(d.run("task", "create", "--id", "letter-1", "--queue", "mail"))
	d.ok(d.run("task", "create", "--id", "letter-2", "--queue", "mail"))
	complete := func(line string) []string {
		shell := &desk{t: t, environ: append(slices.Clone(d.environ), "COMP_LINE="+line, fmt.Sprintf("COMP_POINT=%d", len(line)))}
		words := strings.Fields(shell.ok(shell.run()).out)
		slices.Sort(words)
		return words
	}
	for line, want := range map[string][]string{
		"lubdub wor":                        {"worker"},
		"lubdub worker dr":                  {"drain"},
		"lubdub task get let":               {"letter-1", "letter-2"},
		"lubdub task get letter-1 letter-":  {"letter-1", "letter-2"},
		"lubdub task ls --queue m":          {"mail"},
		"lubdub queue get ":                 {"mail"},
		"lubdub task ls --state RUN":        {"RUNNING"},
		"lubdub task ls --context t":        {"test"},
		"lubdub task get --context no let":  nil,
		"lubdub completion f":               {"fish"},
		"lubdub task get letter-1 -o ya":    {"yaml"},
		"lubdub task cancel -y l":           {"letter-1", "letter-2"}, // -y has no value
		"lubdub task ls --queue mail --lim": {"--limit"},
		"lubdub worker drain worker ":       nil, // a command's name is an argument here
		"lubdub task get let l":             {"letter-1", "letter-2"},
	} {
		if got := complete(line); !slices.Equal(got, want) {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		d.is(d.run("completion", shell), exit.OK, "lubdub")
	}
	d.is(d.run("completion", "csh"), exit.Misuse, "bash")
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	path := testenv.Program(t, "lubdub")
	cmd := exec.Command(bash, "-c", `source <("$0" completion bash) && complete -p lubdub`, path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "lubdub") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestOperatorTokens(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	a := d.is(d.run("token", "inspect"), exit.OK, "A control token of default/default, signed with the key k1", "Role: admin",
		"Subject: tester", "It is valid until")
	if strings.Contains(a.out, "eyJ") {
		t.Errorf("the token was printed: %s", a.out)
	}
	old := bearer(t, token.RoleViewer, time.Now().Add(-2*time.Hour))
	d.is(d.with(old, "token", "inspect", "--stdin"), exit.OK, "It expired at", "1h ago")
	d.is(d.with(old, "token", "inspect", "--stdin", "-o", "json"), exit.OK, `"rol": "viewer"`)
	d.is(d.with("nonsense", "token", "inspect", "--stdin"), exit.Misuse, "this is not a token")
	d.is(d.run("token", "revoke"), exit.Misuse, "--subject")
	d.is(d.run("token", "revoke", "--subject", "tester"), exit.Misuse, "-y")
	d.is(d.run("token", "revoke", "--subject", "tester", "-y"), exit.OK, "Revoked all matching tokens issued before ")
	d.is(d.run("queue", "ls"), exit.NotAllowed, "it was revoked", "lubdub token --role admin")
}

// The document is generated from the commands' own texts.
func TestCommandLineDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := command(nil, "reference")
	if code != exitOK || out != string(want) {
		t.Error("docs/cli.md is not what `lubdub reference` prints; run make generate")
	}
	common, commands, _ := strings.Cut(out, "\n## serve\n")
	if strings.Contains(common, "`--redis ") || !strings.Contains(common, "`--server URL`") ||
		!strings.Contains(commands, "`--redis URL` | Check this Redis") {
		t.Errorf("flags of one command are documented as common ones:\n%s", common)
	}
}
