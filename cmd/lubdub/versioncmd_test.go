package main

import (
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
)

// The changelog's newest version, the image's label and the program agree, and unreleased changes are listed above it.
func TestOneVersion(t *testing.T) {
	headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(readFile(t, "../../CHANGELOG.md"), -1)
	dated := regexp.MustCompile(`^` + regexp.QuoteMeta(release) + ` \(20\d\d-[01]\d-[0-3]\d\)$`)
	if len(headings) < 2 || headings[0][1] != "Unreleased" || !dated.MatchString(headings[1][1]) {
		t.Errorf("CHANGELOG.md begins with %q, want Unreleased and then %s with its date", headings, release)
	}
	if label := `org.opencontainers.image.version="` + release + `"`; !strings.Contains(readFile(t, "../../Dockerfile"), label) {
		t.Errorf("the image has no label %s", label)
	}
	for _, file := range []string{"../../go.mod", "../../go.work", "../../sdk/go/lubdubprom/go.mod", "../../sdk/go/lubdubotel/go.mod"} {
		if sdk := "github.com/lubdub-io/lubdub/sdk/go v" + release; !strings.Contains(readFile(t, file), sdk) {
			t.Errorf("%s does not have %s, which is tagged with this release", file, sdk)
		}
	}
	if strings.Contains(readFile(t, "../../go.mod"), "replace") {
		t.Error("a replace in go.mod forbids go install github.com/lubdub-io/lubdub/cmd/lubdub@version")
	}
}

func TestVersionOfABuild(t *testing.T) {
	testenv.OnlyAll(t)
	skipIfShort(t)
	path := filepath.Join(t.TempDir(), "lubdub")
	build := func(flags ...string) string {
		t.Helper()
		args := append(append([]string{"build", "-o", path}, flags...), ".")
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := exec.Command(path, "version").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	output := build("-ldflags", "-X main.version=1.2.3 -X main.commit=1a2b3c4 -X main.date=2026-01-31T10:00:00Z")
	if !strings.HasPrefix(output, "lubdub 1.2.3 (commit 1a2b3c4, 2026-01-31T10:00:00Z, go1.") {
		t.Errorf("a build with flags prints %q", output)
	}
	// A plain one prints what the go command knew, which in an unpacked archive is nothing.
	output = build()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "lubdub " + release + " ("
	if s := noted(info); s.commit != "" {
		want += "commit " + s.commit + ", " + s.date + ", "
	}
	if !strings.HasPrefix(output, want+"go1.") {
		t.Errorf("a plain build prints %q, want %q and more", output, want)
	}
}

func TestWhatTheGoCommandNotes(t *testing.T) {
	setting := func(pairs ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(pairs); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return info
	}
	const revision, at = "1a2b3c4d5e6f1a2b3c4d5e6f1a2b3c4d5e6f1a2b", "2026-01-31T10:00:00Z"
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want source
	}{
		"nothing":      {nil, source{}},
		"no checkout":  {setting("GOOS", "linux"), source{}},
		"a commit":     {setting("vcs", "git", "vcs.revision", revision, "vcs.time", at, "vcs.modified", "false"), source{"1a2b3c4", at}},
		"with changes": {setting("vcs.modified", "true", "vcs.revision", revision, "vcs.time", at), source{"1a2b3c4-dirty", at}},
		"short":        {setting("vcs.revision", "12"), source{"12", ""}},
	} {
		if got := noted(c.info); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
