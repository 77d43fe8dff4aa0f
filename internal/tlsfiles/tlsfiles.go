// Package tlsfiles creates TLS configurations from files and reloads the files when they change, so that certificates are renewed without
// a restart. It does not know what the connections are for.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// MinVersion is the oldest supported version of TLS.
const MinVersion = tls.VersionTLS12

// Server configures a listener with the certificate and key in PEM files. With a clientCA file only clients with a certificate signed by
// it are accepted.
func Server(cert, key, clientCA string, log *slog.Logger) (*tls.Config, error) {
	f, err := follow(cert, key, clientCA, log)
	if err != nil {
		return nil, err
	}
	return f.server(), nil
}

func (f *files) server() *tls.Config {
	return &tls.Config{MinVersion: MinVersion, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil }}
}

func server(cert, key, clientCA string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", cert, key, err)
	}
	c := &tls.Config{MinVersion: MinVersion, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if clientCA != "" {
		if c.ClientCAs, err = pool(clientCA); err != nil {
			return nil, err
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// Client configures connections to a server. Every parameter may be empty: ca means the system's roots, serverName the dialled name, cert
// and key no client certificate. A renewed client certificate is used for new connections; a new ca needs a restart.
func Client(ca, cert, key, serverName string, log *slog.Logger) (*tls.Config, error) {
	c := &tls.Config{MinVersion: MinVersion, ServerName: serverName}
	if ca != "" {
		var err error
		if c.RootCAs, err = pool(ca); err != nil {
			return nil, err
		}
	}
	if cert == "" {
		return c, nil
	}
	f, err := follow(cert, key, "", log)
	if err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &f.current().Certificates[0], nil }
	return c, nil
}

func pool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return p, nil
}

// files is the content of files, and their state when they were read.
type files struct {
	paths []string
	load  func() (*tls.Config, error)
	log   *slog.Logger
	every time.Duration // the minimum time between two checks

	mu      sync.Mutex
	config  *tls.Config
	states  []fileState
	checked time.Time
	broken  bool // they have changed and are now invalid
}

// fileState is the state of a file by which a change is detected.
type fileState struct {
	size    int64
	changed time.Time
}

func follow(cert, key, clientCA string, log *slog.Logger) (f *files, err error) {
	f = &files{paths: []string{cert, key}, log: log, every: time.Second, checked: time.Now()}
	f.load = func() (*tls.Config, error) { return server(cert, key, clientCA) }
	if clientCA != "" {
		f.paths = append(f.paths, clientCA)
	}
	if f.states, err = f.stat(); err != nil {
		return nil, err
	}
	f.config, err = f.load()
	return f, err
}

func (f *files) stat() ([]fileState, error) {
	states := make([]fileState, len(f.paths))
	for i, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		states[i] = fileState{info.Size(), info.ModTime()}
	}
	return states, nil
}

// current returns the content of the files, or their last valid content: a certificate and its key are rarely replaced at exactly the
// same time.
func (f *files) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < f.every {
		return f.config
	}
	f.checked = time.Now()
	if err := f.reload(); err != nil {
		if !f.broken {
			f.log.Error("the new TLS files cannot be used; the old ones stay in use", "error", err)
		}
		f.broken = true
	}
	return f.config
}

func (f *files) reload() error {
	states, err := f.stat()
	if err != nil {
		return err
	}
	same := !f.broken
	for i := range states {
		same = same && states[i].size == f.states[i].size && states[i].changed.Equal(f.states[i].changed)
	}
	if same {
		return nil
	}
	config, err := f.load()
	if err != nil {
		return err
	}
	f.config, f.states, f.broken = config, states, false
	f.log.Info("TLS files were read again", "files", f.paths)
	return nil
}
