package redistest

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Every server's scripts run as the user that deploy/redis/users.acl defines for Lubdub, so that every test verifies that its list of
// commands is sufficient. A test itself accesses the store as the default user, which may run every command.
const (
	User     = "lubdub"
	password = "of-the-tests"
)

// As returns a server's host and port with the user's name and password before it, as URLs have them.
func As(address string) string { return url.UserPassword(User, password).String() + "@" + address }

// Credentials returns the same as URL parameters: the user and password before the host of a Sentinel are the Sentinel's own.
func Credentials() string {
	return url.Values{"username": {User}, "password": {password}}.Encode()
}

var hashed = regexp.MustCompile(`#\S+`)

// HasWAITAOF reports whether the tests' server supports WAITAOF, as Redis does since 7.2 and Valkey always has.
var HasWAITAOF = sync.OnceValues(func() (bool, error) {
	path, err := binary()
	if err != nil {
		return false, err
	}
	text, err := exec.Command(path, "--version").Output() // Redis server v=7.0.15 …
	if err != nil {
		return false, fmt.Errorf("%s --version: %w", path, err)
	}
	version := versioned.FindStringSubmatch(string(text))
	if version == nil {
		return false, fmt.Errorf("%s --version prints no version: %s", path, text)
	}
	return version[1] > "7" || version[1] == "7" && version[2] >= "2", nil
})

var versioned = regexp.MustCompile(` v=(\d)\.(\d)`)

// aclFile returns the ACL of deployments with the password of tests, and with a default user that may run every command. If WAITAOF
// exists it is added, as deploy/redis/README.md describes.
func aclFile() (string, error) {
	rules, err := DeployedACL()
	if err != nil {
		return "", err
	}
	has, err := HasWAITAOF()
	if err != nil {
		return "", err
	}
	if has {
		rules += " +waitaof"
	}
	return "user default on nopass sanitize-payload ~* &* +@all\n" + hashed.ReplaceAllString(rules, ">"+password) + "\n", nil
}

// DeployedACL returns the line of deploy/redis/users.acl for Lubdub's user.
func DeployedACL() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "deploy", "redis", "users.acl")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "user "+User+" ") {
			return strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("%s has no line for the user %s", path, User)
}

// moduleRoot finds the directory of go.mod above the working directory of the tests.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod above the folder in which the tests run")
		}
		dir = up
	}
	return "", err
}
