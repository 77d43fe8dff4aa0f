// Package contexts stores the deployments that an operator works with: their addresses and credentials.
package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"
)

// Context is one deployment as one operator sees it.
type Context struct {
	// Server is the URL of the API, or several with commas between them.
	Server string `yaml:"server"`
	// Token is the credential; or TokenCommand is a line for sh that prints one.
	Token        string `yaml:"token,omitempty"`
	TokenCommand string `yaml:"tokenCommand,omitempty"`
	// Login renews Token; nil: it is not from `lubdub login`.
	Login *Login `yaml:"login,omitempty"`
	// CAFile holds the authorities to trust, in PEM; empty: the system's.
	CAFile string `yaml:"caFile,omitempty"`
	// Tenant and Workspace are the scope of every call; empty: the token's own.
	Tenant    string `yaml:"tenant,omitempty"`
	Workspace string `yaml:"workspace,omitempty"`
	// AllowHTTP lets the token go over http:// to a host that is not this one.
	AllowHTTP bool `yaml:"allowHTTP,omitempty"`
}

// Login is a sign-in with the server's OpenID provider.
type Login struct {
	TokenURL     string `yaml:"tokenURL"`
	ClientID     string `yaml:"clientID"`
	RefreshToken string `yaml:"refreshToken,omitempty"`
}

// File is all of them.
type File struct {
	// Path is where the file is stored.
	Path string `yaml:"-"`

	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts"`
}

// pathOf returns where the file is stored: lubdub/contexts.yaml in XDG_CONFIG_HOME, or in ~/.config.
func pathOf(getenv func(string) string) (string, error) {
	if base := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "lubdub", "contexts.yaml"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_CONFIG_HOME nor HOME is set, so there is no folder for contexts")
	}
	return filepath.Join(home, ".config", "lubdub", "contexts.yaml"), nil
}

// Open reads the file; a missing file is empty. A file that other users may read is refused, since it contains tokens.
func Open(getenv func(string) string) (*File, error) {
	path, err := pathOf(getenv)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Contexts: map[string]Context{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds tokens and others may read it; run: chmod 600 %[1]s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict()); err != nil {
		// The library quotes lines around the mistake, and one of them may be a token.
		return nil, fmt.Errorf("%s is not what `lubdub context set` writes; mend it, or remove it", path)
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f, nil
}

// Save writes the file, readable by its owner only, in one step.
func (f *File) Save() error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(f.Path), ".contexts-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	if _, err := temporary.Write(text); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.Path)
}

// Change reads the file, changes it and writes it, while no other command does so.
func Change(getenv func(string) string, change func(*File) error) error {
	path, err := pathOf(getenv)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which releases it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("%s cannot be locked: %w", lock.Name(), err)
	}
	file, err := Open(getenv)
	if err != nil {
		return err
	}
	if err := change(file); err != nil {
		return err
	}
	return file.Save()
}

// Names lists the contexts.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckName returns what is wrong with the name of a context, or nil.
func CheckName(name string) error {
	if !goodName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a context; use letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// Set adds or changes a context.
func (f *File) Set(name string, c Context) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if c.Token != "" && c.TokenCommand != "" {
		return errors.New("a context has a token or a command that prints one, not both")
	}
	f.Contexts[name] = c
	return nil
}

// Remove deletes a context. If it is the current one, none is current afterwards.
func (f *File) Remove(name string) {
	delete(f.Contexts, name)
	if f.Current == name {
		f.Current = ""
	}
}

// Add stores a context created by a command. It becomes the current one if there is none, or if it replaces the current one.
func Add(getenv func(string) string, name string, c Context) (current bool, err error) {
	err = Change(getenv, func(file *File) error {
		file.Current = cmp.Or(file.Current, name)
		current = file.Current == name
		return file.Set(name, c)
	})
	return current, err
}
