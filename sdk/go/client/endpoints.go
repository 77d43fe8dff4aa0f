package client

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// endpoints are the addresses of one deployment. The one that answered last is tried first.
type endpoints struct {
	urls   []string   // without trailing slashes
	parsed []*url.URL // the same
	bare   []error    // why no token may be sent there; nil: it may
	at     atomic.Int32
}

func newEndpoints(urls []string, set *settings) (*endpoints, error) {
	e := &endpoints{}
	for _, raw := range urls {
		clean, err := checkURL(strings.TrimSpace(raw))
		if err != nil {
			return nil, err
		}
		if slices.Contains(e.urls, clean) {
			continue
		}
		u, err := url.Parse(clean)
		if err != nil {
			return nil, err
		}
		e.urls, e.parsed, e.bare = append(e.urls, clean), append(e.parsed, u), append(e.bare, checkSecret(u, set.allowHTTP))
	}
	return e, nil
}

func checkURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", errors.New("lubdub: an address is not like https://host:port; check the address in client.New or " + EnvURL)
	}
	if u.User != nil { // omitted, since it is a secret
		return "", fmt.Errorf("lubdub: the address of %s contains credentials; give a token with client.Token instead", u.Host)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("lubdub: the address %s has more than a path; give scope and token as options", u.Host)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), nil
}

// checkSecrecy refuses addresses that would expose the token.
func (e *endpoints) checkSecrecy() error {
	for _, err := range e.bare {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSecret(u *url.URL, allowHTTP bool) error {
	if allowHTTP || u.Scheme == "https" {
		return nil
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%w: http://%s would expose the token on the network; use https, or client.AllowHTTP() "+
		"on a network that you trust", errNotSent, u.Host)
}

var errNotSent = errors.New("lubdub: nothing was sent")

// first is the number of the address to try first.
func (e *endpoints) first() int32 { return e.at.Load() }

// url is the URL of an escaped path at an address.
func (e *endpoints) url(at int32, path string) (*url.URL, error) {
	if strings.Contains(path, "%") {
		return url.Parse(e.urls[at] + path)
	}
	u := *e.parsed[at]
	u.Path += path
	if u.RawPath != "" {
		u.RawPath += path
	}
	return &u, nil
}

// failed moves on from an address that did not answer, unless another call has.
func (e *endpoints) failed(at int32) {
	e.at.CompareAndSwap(at, (at+1)%int32(len(e.urls)))
}
