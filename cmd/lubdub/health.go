package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type healthCmd struct {
	URL     string        `name:"url" placeholder:"URL" help:"Server to check, such as http://127.0.0.1:9090, or one of its health pages. Default: the admin listener of the configuration."`
	File    string        `name:"config" short:"c" placeholder:"FILE" help:"YAML file with settings (LUBDUB_CONFIG)."`
	Timeout time.Duration `default:"2s" help:"How long to wait for the answer."`
}

// Run exits with 0 if the server is ready, and with 1 if it is not or does not answer.
func (c *healthCmd) Run(a *app) error {
	page, transport := "", &http.Transport{DisableKeepAlives: true}
	if c.URL != "" {
		var err error
		if page, err = healthPage(c.URL); err != nil {
			return &mistake{err}
		}
	} else {
		cfg, err := loadConfig(config.Input{File: c.File, Environ: a.environ})
		if err != nil {
			return err
		}
		host, port, _ := net.SplitHostPort(cfg.AdminListen) // Load has checked it
		if port == "0" {
			return &mistake{fmt.Errorf("admin-listen is %s, so its port is known to the server only; name the page with --url", cfg.AdminListen)}
		}
		page = "http://" + net.JoinHostPort(reachable(host), port) + "/readyz"
		if cfg.AdminTLS == "on" {
			page = "https" + strings.TrimPrefix(page, "http")
			if transport.TLSClientConfig, err = sameCertificate(cfg); err != nil {
				return err
			}
		}
	}
	client := &http.Client{Timeout: c.Timeout, Transport: transport}
	res, err := client.Get(page)
	if err != nil {
		return fmt.Errorf("%w. Is the server running? 'lubdub serve' starts one, 'lubdub dev' one to try; --url names another one to ask", err)
	}
	defer res.Body.Close()
	var health v1.Health
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	_ = json.Unmarshal(body, &health)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", page, strings.Join(strings.Fields(res.Status+" "+health.Status+" "+health.Message+". "+
			cmp.Or(health.Next, "Name the base URL of a server of Lubdub with --url")), " "))
	}
	text := cmp.Or(health.Status, "ok")
	if health.Message != "" {
		text += ": " + strings.TrimSuffix(health.Message, ".") + "."
	}
	_, err = fmt.Fprintln(a.stdout, strings.Join(strings.Fields(text+" "+health.Next), " "))
	return err
}

// healthPage returns the URL to request for an argument: a health page, or a server with an optional base path.
func healthPage(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--url %q is not the URL of a server; write for example http://127.0.0.1:9090", text)
	}
	switch path.Base(u.Path) {
	case "readyz", "healthz", "livez":
	default:
		u = u.JoinPath("readyz")
	}
	return u.String(), nil
}

// sameCertificate trusts only the certificate that the server is configured with, whatever name it is for. If the server requires client
// certificates, the same certificate is presented: the clients' CA must then have signed it.
func sameCertificate(cfg *config.Loaded) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tlsfiles.MinVersion, Certificates: []tls.Certificate{pair},
		InsecureSkipVerify: true, // the exact certificate is verified instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, pair.Certificate[0]) {
				return errors.New("the admin listener shows another certificate than tls-cert-file holds; was it changed just now?")
			}
			return nil
		},
	}, nil
}

// reachable returns a host at which a client on this machine can reach a server that listens on the given one.
func reachable(host string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}
