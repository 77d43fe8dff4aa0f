package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/lubdub-io/lubdub/api"
)

// endpoint is an address at which the process will serve. With a configured port it listens only when requests can be answered: the kernel
// accepts connections as soon as a socket listens, and clients that connect while the start waits for Redis would have to wait too.
type endpoint struct {
	setting, configured string // the name of the setting and its value
	addr                string // with the port that the system chose, if the setting allows any
	listener            net.Listener
}

// newEndpoint fails if the address is in use. At a port that the system chooses it listens from here on, so that no other process takes
// the port; no client knows its number before it is printed.
func newEndpoint(setting, configured string) (*endpoint, error) {
	l, err := listen(setting, configured)
	if err != nil {
		return nil, err
	}
	e := &endpoint{setting: setting, configured: configured, addr: l.Addr().String(), listener: l}
	if _, port, _ := net.SplitHostPort(configured); port != "0" && port != "" {
		e.close()
	}
	return e, nil
}

// listen begins to accept connections.
func (e *endpoint) listen() (err error) {
	if e.listener == nil {
		e.listener, err = listen(e.setting, e.configured)
	}
	return err
}

func (e *endpoint) close() {
	if e != nil && e.listener != nil {
		_ = e.listener.Close()
		e.listener = nil
	}
}

// listen opens a listener for a setting. A port in use is so common that it has a specific error message.
func listen(setting, address string) (net.Listener, error) {
	l, err := api.Listen(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		host, _, _ := net.SplitHostPort(address)
		return nil, fmt.Errorf("%s is in use already: stop what listens there (another lubdub?), or choose another address with --%s, such as "+
			"--%s %s for any free port",
			address, setting, setting, net.JoinHostPort(host, "0"))
	case err != nil:
		return nil, fmt.Errorf("--%s %s: %w", setting, address, err)
	}
	return l, nil
}
