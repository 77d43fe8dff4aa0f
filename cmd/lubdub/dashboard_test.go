package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// What dev prints first opens the dashboard, with a token that works, below a base path too; and envelopes carry that path.
func TestDevPrintsTheDashboardFirst(t *testing.T) {
	t.Parallel()
	r := launch(t, nil, "dev", "--no-fleet", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--public-url", "http://localhost/lubdub")
	first := r.line("")
	text, ok := strings.CutPrefix(first, "dashboard ")
	at, err := url.Parse(text)
	if !ok || err != nil || at.Path != "/lubdub/ui/" {
		t.Fatalf("it begins with %q", first)
	}
	signIn, err := url.ParseQuery(at.Fragment)
	if err != nil || signIn.Get("tenantId") != "default" || signIn.Get("workspaceId") != "default" {
		t.Errorf("%v %v", signIn, err)
	}
	base := at.Scheme + "://" + at.Host + "/lubdub"
	if status, page := request("GET", base+"/ui/", "", ""); status != http.StatusOK || !strings.Contains(page, "<!doctype html>") {
		t.Errorf("%d %s", status, page)
	}
	status, envelope := request("POST", base+"/v1/tasks?tenantId=default&workspaceId=default", signIn.Get("token"), "{}")
	if status != http.StatusCreated || !strings.Contains(envelope, `"callbackBaseUrl":"http://localhost/lubdub"`) {
		t.Errorf("%d %s", status, envelope)
	}
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

// The browser is directed to the dashboard once, by an address without secrets, and nothing else gets the token.
func TestUIHandsTheTokenToTheBrowserOnly(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skipf("curl is the browser here: %v", err)
	}
	d := newDesk(t, token.RoleViewer)
	led, browser := filepath.Join(t.TempDir(), "led"), filepath.Join(t.TempDir(), "browser")
	script := "#!/bin/sh\necho \"$1\" > " + led + ".url\ncurl -s -o /dev/null -w '%{redirect_url}' \"$1\" > " + led + "\n"
	if err := os.WriteFile(browser, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	d.environ = append(d.environ, "BROWSER="+browser, "PATH="+os.Getenv("PATH"))
	quiet := d.ok(d.run("ui", "--for", "5m"))
	printed := strings.TrimSpace(d.ok(d.run("ui", "--for", "5m", "--print", "--tenant", "default", "--workspace", "default")).out)
	at, err := url.Parse(printed)
	if err != nil || printed[:strings.Index(printed, "#")] != d.api+"/ui/" {
		t.Fatalf("%q %v", printed, err)
	}
	signIn, err := url.ParseQuery(at.Fragment)
	if err != nil || signIn.Get("tenantId") != "default" || signIn.Get("context") != "test" || signIn.Get("token") == "" {
		t.Errorf("%v %v", signIn, err)
	}
	var to, prompt []byte
	until(t, "the browser is led on", func() bool { to, _ = os.ReadFile(led); return len(to) > 0 })
	if prompt, err = os.ReadFile(led + ".url"); err != nil {
		t.Fatal(err)
	}
	address, signed, _ := strings.Cut(string(to), "#")
	params, err := url.ParseQuery(signed)
	if err != nil || address != d.api+"/ui/" || params.Get("token") == "" {
		t.Errorf("the browser is led to %q", to)
	}
	for _, of := range []url.Values{signIn, params} {
		inspected := d.ok(d.with(of.Get("token"), "token", "inspect", "--stdin", "-o", "json")).out
		var claims struct {
			Role token.Role `json:"rol"`
			Ends int64      `json:"exp"`
		}
		if err := json.Unmarshal([]byte(inspected), &claims); err != nil || claims.Role != token.RoleViewer ||
			time.Until(time.Unix(claims.Ends, 0)) > 5*time.Minute {
			t.Errorf("the page has the token %s", inspected)
		}
	}
	for _, output := range []string{quiet.out, quiet.err, string(prompt)} {
		if strings.Contains(output, "eyJ") {
			t.Errorf("the token is printed: %s", output)
		}
	}
	d.environ = append(d.environ, "BROWSER="+browser+"-missing")
	d.is(d.run("ui"), exit.Failed, "lubdub ui --print")
}

// Each act of the dashboard shows the command that does the same: there must be one, with the flags that are shown.
func TestTheDashboardShowsCommandsThatAreThere(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, kong.NamedMapper("setting", kong.MapperFunc((&app{}).parseSetting)))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile("../../ui/src/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	has := func(noun, verb string, flags []string) {
		for _, n := range parser.Model.Children {
			for _, v := range n.Children {
				if n.Name != noun || v.Name != verb {
					continue
				}
				for _, f := range flags {
					if !slices.ContainsFunc(v.Flags, func(is *kong.Flag) bool { return is.Name == f }) {
						t.Errorf("'lubdub %s %s' has no --%s", noun, verb, f)
					}
				}
				return
			}
		}
		t.Errorf("there is no 'lubdub %s %s'", noun, verb)
	}
	acts := regexp.MustCompile(`noun: '(\w+)',\s+verb: '(\w+)',(?s:.*?)\n    one:`).FindAllStringSubmatch(read("acts.tsx"), -1)
	if len(acts) < 15 {
		t.Fatalf("only %d acts are found", len(acts))
	}
	for _, act := range acts {
		var flags []string
		for _, f := range []string{"reason", "grace", "deadline"} {
			if strings.Contains(act[0], f+": true") {
				flags = append(flags, f)
			}
		}
		if act[2] == "redeliver" {
			flags = append(flags, "delivery")
		}
		has(act[1], act[2], flags)
	}
	_, list, _ := strings.Cut(read("cli.ts"), "const filters")
	list, _, _ = strings.Cut(list, "};")
	for _, f := range regexp.MustCompile(`(\w+): '--(\w+)'`).FindAllStringSubmatch(list, -1) {
		if f[1] != "version" {
			has("task", "cancel", []string{f[2]})
			has("task", "retry", []string{f[2]})
		}
		if slices.Contains([]string{"queue", "machineId", "version", "label"}, f[1]) {
			has("worker", "drain", []string{f[2]})
			has("worker", "uncordon", []string{f[2]})
		}
	}
}
