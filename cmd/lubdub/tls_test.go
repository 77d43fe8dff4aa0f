package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/tlstest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var tlsPattern = regexp.MustCompile(`listening on (https://\S+) \(admin (https://[^,)]+)`)

func TestServeTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	cert, key := ca.Issue("server", "localhost")
	files := []string{"--tls-cert-file", cert, "--tls-key-file", key, "--admin-tls", "on"}
	r := launch(t, withKey, append(append([]string{"serve", "--redis", "embedded"}, anyPort...), files...)...)
	m := tlsPattern.FindStringSubmatch(r.line("listening"))
	if m == nil {
		t.Fatal("the line does not mention https")
	}
	api, admin := m[1], m[2]
	client := func(config *tls.Config) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	}
	trusting := client(ca.Client("", ""))
	for _, page := range []string{api + "/readyz", admin + "/readyz"} {
		res, err := trusting.Get(page)
		if err != nil || res.StatusCode != 200 || res.TLS.Version < tls.VersionTLS12 {
			t.Fatalf("%s: %+v %v", page, res, err)
		}
		_ = res.Body.Close()
	}
	wantCertificateEnd(t, trusting, admin, cert)
	old := ca.Client("", "")
	old.MaxVersion = tls.VersionTLS11
	if res, err := client(old).Get(api + "/livez"); err == nil {
		t.Errorf("TLS 1.1 was answered %d", res.StatusCode)
	}
	if status, _ := request("GET", "http"+strings.TrimPrefix(api, "https")+"/livez", "", ""); status == 200 {
		t.Error("plain HTTP was answered")
	}

	req, err := http.NewRequest("POST", api+"/v1/tasks", strings.NewReader(quickTask))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken(t))
	res, err := trusting.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var e v1.TaskEnvelope
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.CallbackBaseURL != api {
		t.Errorf("envelopes carry %q (%v)", e.CallbackBaseURL, err)
	}

	environ := []string{"LUBDUB_ADMIN_LISTEN=" + strings.TrimPrefix(admin, "https://"), "LUBDUB_TLS_CERT_FILE=" + cert,
		"LUBDUB_TLS_KEY_FILE=" + key, "LUBDUB_ADMIN_TLS=on"}
	if code, stdout, stderr := command(environ, "health"); code != exitOK || stdout != "ok\n" {
		t.Error(code, stdout, stderr)
	}

	ca.Issue("server", "renewed.test") // over the same files
	renewed := ca.Client("", "")
	renewed.ServerName = "renewed.test"
	until(t, "the new certificate is served", func() bool {
		res, err := client(renewed).Get(api + "/livez")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
}

// wantCertificateEnd compares the certificate's end in /metrics with the certificate.
func wantCertificateEnd(t *testing.T, client *http.Client, admin, file string) {
	t.Helper()
	res, err := client.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^lubdub_tls_certificate_not_after_timestamp_seconds\{of="listeners"\} (\S+)$`).FindSubmatch(page)
	if m == nil {
		t.Fatal("/metrics has nothing about the certificate")
	}
	if seconds, err := strconv.ParseFloat(string(m[1]), 64); err != nil || int64(seconds) != certificate.NotAfter.Unix() {
		t.Errorf("the certificate ends %s by /metrics, and at %d", m[1], certificate.NotAfter.Unix())
	}
}
