package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// hello builds a program without parts for a system into a folder.
func hello(t *testing.T, folder, name, system, arch string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(folder, name), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestEachFileMatchesItsName(t *testing.T) {
	folder := t.TempDir()
	hello(t, folder, "program", runtime.GOOS, runtime.GOARCH)
	path := filepath.Join(folder, "program")
	for _, c := range []struct{ system, arch string }{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "mips"}, {"plan9", "amd64"},
	} {
		right := c.system == runtime.GOOS && c.arch == runtime.GOARCH
		if err := check(path, c.system, c.arch); (err == nil) != right {
			t.Errorf("a program for %s/%s as one for %s/%s: %v", runtime.GOOS, runtime.GOARCH, c.system, c.arch, err)
		}
	}
	if sh, err := exec.LookPath("sh"); err == nil && runtime.GOOS == "linux" {
		if err := check(sh, "linux", runtime.GOARCH); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
			t.Errorf("a dynamic program: %v", err)
		}
	}
}

func TestFinish(t *testing.T) {
	folder := t.TempDir()
	name := "hello-1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH
	hello(t, folder, name, runtime.GOOS, runtime.GOARCH)
	if err := os.WriteFile(filepath.Join(folder, "LICENSE"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds its own files
		if err := finish(folder, "1.2.3", "2026-01-31T10:00:00Z"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, sums))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	// The checksum is that of FIPS 180-2's example.
	if len(lines) != 3 || lines[0] != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  LICENSE" ||
		!strings.HasSuffix(lines[1], "  "+name) || !strings.HasSuffix(lines[2], "  "+name+sbomSuffix) {
		t.Errorf("%s:\n%s", sums, text)
	}
	if err := finish(t.TempDir(), "1.2.3", ""); err == nil {
		t.Error("an empty folder was good")
	}
}

// The SBOM is CycloneDX that its own library reads back, with each module's package URL, replaced ones as what replaced them.
func TestSBOM(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/lubdub-io/lubdub"}, Deps: []*debug.Module{
		{Path: "github.com/BurntSushi/toml", Version: "v1.4.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
		{Path: "github.com/lubdub-io/lubdub/sdk/go", Version: "(devel)"},
		{Path: "a.io/b", Version: "v1.0.0", Replace: &debug.Module{Path: "c.io/d", Version: "v2.0.0+incompatible"}},
	}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).Encode(sbom(info, "lubdub", "0.1.0", "2026-01-31T10:00:00Z",
		"00ff")); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&out, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	program := bom.Metadata.Component
	if bom.Metadata.Timestamp != "2026-01-31T10:00:00Z" || program.Name != "lubdub" || program.Version != "0.1.0" ||
		(*program.Hashes)[0].Value != "00ff" {
		t.Errorf("%+v", bom.Metadata)
	}
	urls := []string{program.PackageURL}
	for _, c := range *bom.Components {
		urls = append(urls, c.PackageURL)
	}
	if want := []string{
		"pkg:golang/github.com/lubdub-io/lubdub@v0.1.0?type=module",
		"pkg:golang/std@go1.26.8?type=module",
		"pkg:golang/github.com/burntsushi/toml@v1.4.0?type=module",
		"pkg:golang/github.com/lubdub-io/lubdub/sdk/go@v0.1.0?type=module",
		"pkg:golang/c.io/d@v2.0.0%2Bincompatible?type=module",
	}; !slices.Equal(urls, want) {
		t.Errorf("%q", urls)
	}
	const of0to31 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	if hashes := (*bom.Components)[1].Hashes; hashes == nil || (*hashes)[0].Value != of0to31 {
		t.Errorf("%+v", hashes)
	}
}
