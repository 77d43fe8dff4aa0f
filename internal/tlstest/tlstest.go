// Package tlstest creates certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates. File is its own certificate.
type CA struct {
	File string

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA creates a CA in a directory of the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	c := &CA{t: t, dir: t.TempDir()}
	c.File = filepath.Join(c.dir, "ca.pem")
	c.key = c.newKey()
	c.cert = &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "a CA of tests"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c.cert, c.cert, &c.key.PublicKey, c.key)
	c.check(err)
	c.cert, err = x509.ParseCertificate(der)
	c.check(err)
	c.write(c.File, "CERTIFICATE", der)
	return c
}

// Issue writes a certificate for a name (and for loopback if it is localhost) and its key, and overwrites earlier ones with this file
// name.
func (c *CA) Issue(file, name string) (cert, key string) {
	c.t.Helper()
	cert, key = filepath.Join(c.dir, file+".pem"), filepath.Join(c.dir, file+".key")
	k := c.newKey()
	template := &x509.Certificate{
		SerialNumber: serial(c.t), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "localhost" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &k.PublicKey, c.key)
	c.check(err)
	private, err := x509.MarshalECPrivateKey(k)
	c.check(err)
	c.write(cert, "CERTIFICATE", der)
	c.write(key, "EC PRIVATE KEY", private)
	return cert, key
}

// Client returns a configuration that trusts the CA, and presents a certificate unless the file names are empty.
func (c *CA) Client(cert, key string) *tls.Config {
	c.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(c.cert)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		c.check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func (c *CA) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.check(err)
	return k
}

func serial(t testing.TB) *big.Int {
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (c *CA) write(path, kind string, der []byte) {
	c.check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (c *CA) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}
