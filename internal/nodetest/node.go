// Package nodetest provides tests with the npm packages that Lubdub is compared with, in the versions of package-lock.json.
package nodetest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	//go:embed package.json
	manifest []byte
	//go:embed package-lock.json
	lock []byte
)

// Folder returns a directory whose node_modules contains them. It is next to the go command's cache and is created once for each
// package-lock.json, against which npm checks what it downloads.
func Folder(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(cache, "lubdub-tests", "npm-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(folder, "complete")); err == nil {
		return folder
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package.json", manifest)
	write("package-lock.json", lock)
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v: %s", err, out)
	}
	write("complete", nil)
	return folder
}
