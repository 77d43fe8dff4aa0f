package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/lubdub-io/lubdub/internal/probe"
)

// Bounds of one request.
const (
	Timeout    = 15 * time.Second // from its first byte to the end of the answer's headers
	MaxExcerpt = 1 << 10          // of the answer's body, that are kept
	maxDrained = 16 << 10         // of it, that are read so that the connection can be used again
	bodyTime   = 2 * time.Second  // in which these must come: the status has been said by then, and counts without them
	maxURL     = 2 << 10
	lookUp     = 3 * time.Second // for the name's addresses, when a URL is saved
)

// ErrAddress is the cause of a refusal to call an address.
var ErrAddress = errors.New("this host has an address that is not public, which may be private, loopback, link-local or a cloud's own; " +
	"use a public one, or have an operator open its range with webhook-allow-cidrs")

// Options say what may be called. The zero Options allow https to public addresses.
type Options struct {
	AllowHTTP bool           // http too
	Allow     []netip.Prefix // ranges that may be called though they are not public
}

// Poster posts. Make it with New; its methods may be called from any goroutine.
type Poster struct {
	opts   Options
	client *http.Client
}

// New makes a Poster. It follows no redirects and uses no proxy from the environment: either would lead where nobody has looked.
func New(o Options) *Poster {
	p := &Poster{opts: o}
	dialer := &net.Dialer{Timeout: Timeout, Control: p.judgeDialled}
	transport := &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: Timeout, ResponseHeaderTimeout: Timeout,
		MaxResponseHeaderBytes: 16 << 10, MaxIdleConns: 1024, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
	}
	p.client = &http.Client{
		Timeout: Timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// judgeDialled refuses an address that is about to be dialled, after names were resolved.
func (p *Poster) judgeDialled(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !p.allows(at.Addr()) {
		return ErrAddress
	}
	return nil
}

func (p *Poster) allows(a netip.Addr) bool {
	plain := a.Unmap().WithZone("")
	return probe.Public(a) || slices.ContainsFunc(p.opts.Allow, func(r netip.Prefix) bool { return r.Contains(plain) })
}

// Check returns what is wrong with a URL that is to be saved; nil: it may be called as things are now. A name that cannot be
// resolved just now passes: it is judged again when it is dialled.
func (p *Poster) Check(ctx context.Context, text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fmt.Errorf("is longer than %d bytes; use a shorter one", maxURL)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsAny(text, " \t\r\n"):
		return errors.New("is not a URL; write for example https://example.com/hook")
	case strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > unicode.MaxASCII }): // what it is looked up as may be an address
		return errors.New("has a host that is not ASCII; write it as it is looked up, for example https://xn--mnchen-3ya.example/hook")
	case u.User != nil:
		return errors.New("holds credentials, which would be shown to whoever reads the webhook; take them out: each message is signed")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("has a fragment, which no server sees; take it out")
	case u.Scheme == "http" && !p.opts.AllowHTTP:
		return errors.New("begins with http, and its messages could be read on their way; use https, or have an operator set webhook-allow-http")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with https://")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("has a port that there is not; use 1 to 65535")
	}
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		addrs = append(addrs, a)
	} else if endsInNumber(u.Hostname()) {
		return errors.New("has a number for a host, which some read as an address; write the address as 192.0.2.1, or a name")
	} else {
		ctx, cancel := context.WithTimeout(ctx, lookUp)
		defer cancel()
		addrs, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
		if isLocalhost(u.Hostname()) {
			addrs = append(addrs, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		}
	}
	if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !p.allows(a) }) {
		return fmt.Errorf("cannot be called: %w", ErrAddress)
	}
	return nil
}

// isLocalhost reports whether a name is this very machine's, whatever resolvers say of it (RFC 6761).
func isLocalhost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// endsInNumber reports whether a host that is no address ends in a number, as 2130706433 and 0x7f.1 do: by the URL standard it
// is an address, and no name ends so.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || last != "" && strings.Trim(last, "0123456789") == ""
}

// Post posts a body, and returns the status of the answer and the beginning of its body, which is at most MaxExcerpt. The error
// says why there was no answer, and holds nothing of the URL. An answer counts once its headers are there: what becomes of its body,
// as when the connection is cut, does not take it back.
func (p *Poster) Post(ctx context.Context, to string, header map[string]string, body []byte) (status int, excerpt []byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the URL cannot be used any more")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, nil, plain(err)
	}
	defer func() { _ = res.Body.Close() }()
	defer time.AfterFunc(bodyTime, cancel).Stop()
	excerpt, _ = io.ReadAll(io.LimitReader(res.Body, MaxExcerpt))
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
	return res.StatusCode, excerpt, nil
}

// plain says why a request has failed without what only the replica's own network should know: addresses and resolvers.
func plain(err error) error {
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case errors.As(err, &name):
		return errors.New("the name of the host cannot be resolved")
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("there was no answer within %v", Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the host refuses the connection")
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return errors.New("the connection failed: " + op.Err.Error())
	}
	var of *url.Error
	if errors.As(err, &of) {
		return errors.New("the request failed: " + of.Err.Error())
	}
	return errors.New("the request failed: " + err.Error())
}
