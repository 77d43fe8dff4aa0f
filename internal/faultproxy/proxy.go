package faultproxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Proxy forwards bytes to one target and back. Its methods may be called from any goroutine.
type Proxy struct {
	Addr string // where it listens

	target   string
	listener *net.TCPListener
	running  sync.WaitGroup
	delay    atomic.Int64 // ns by which everything that the server sends is delayed
	decide   atomic.Pointer[func([]byte) Action]

	mu     sync.Mutex
	links  map[*link]bool
	still  chan struct{} // nil: not paused; closed by Resume
	refuse bool
	drops  bool     // new connections are not answered
	filler net.Conn // fills the queue of connections meanwhile; nil: another connection does
	closed bool

	idle chan struct{} // gets a value while nothing is accepted because of Drop; closed at the end
}

// Action is what happens to a request.
type Action int

const (
	Pass        Action = iota
	LoseRequest        // the server never gets it, and the connection is cut
	CutShort           // the server gets half of it, and the connection is cut
	LoseReply          // the server executes it, the client never gets the reply, and the connection is cut
)

// Start runs a proxy to the target on a free loopback port until the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l.(*net.TCPListener), links: map[*link]bool{}, idle: make(chan struct{})}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Intercept sets a function that decides what happens to the bytes that clients send from now on. It gets each piece as it was written,
// which is one request or one pipeline if it is below 32 KiB. Nil lets everything pass. The function may be called from several
// goroutines concurrently.
func (p *Proxy) Intercept(decide func(request []byte) Action) {
	if decide == nil {
		p.decide.Store(nil)
		return
	}
	p.decide.Store(&decide)
}

// Delay delays everything that the server sends by d from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Pause stops the traffic in both directions until Resume; connections stay open, and new ones are accepted.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		p.still = make(chan struct{})
	}
}

// Drop does as Pause, and new connections get no answer, as if packets were lost. It lasts until Resume.
func (p *Proxy) Drop() {
	p.Pause()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops {
		return
	}
	p.drops = true
	// The kernel drops connection requests while the queue of unaccepted connections is full.
	_ = p.listener.SetDeadline(time.Unix(1, 0))
	<-p.idle // else it could still accept the connection that fills the queue
	p.backlog(0)
	filler, _ := net.DialTimeout("tcp", p.Addr, time.Second) // gets no answer if a client filled the queue first
	p.fill(filler)
}

func (p *Proxy) fill(with net.Conn) {
	if p.filler != nil {
		_ = p.filler.Close()
	}
	p.filler = with
}

func (p *Proxy) backlog(n int) {
	if raw, err := p.listener.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), n) })
	}
}

// Resume continues the traffic after Pause and Drop, and accepts connections again after Refuse and Drop.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	if p.drops {
		p.drops = false
		p.fill(nil)
		p.backlog(128)
		_ = p.listener.SetDeadline(time.Time{})
	}
	if p.still != nil {
		close(p.still)
		p.still = nil
	}
}

// Cut closes every connection. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse closes every connection, and every new one at once, until Resume.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.Cut()
}

func (p *Proxy) accept() {
	defer close(p.idle)
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) { // by Drop
			select {
			case p.idle <- struct{}{}:
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if err != nil { // such as too many open files: the client waits until another connection is closed
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.running.Go(func() { p.carry(c) })
	}
}

// carry serves one connection until either end closes it.
func (p *Proxy) carry(client net.Conn) {
	l := &link{proxy: p, client: client, ended: make(chan struct{})}
	if !p.add(l) {
		_ = client.Close()
		return
	}
	defer p.remove(l)
	var err error
	if l.server, err = net.DialTimeout("tcp", p.target, 5*time.Second); err != nil {
		l.cut()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(l.client, l.server, l.request) })
	both.Go(func() { l.pump(l.server, l.client, l.reply) })
	both.Wait()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) remove(l *link) {
	l.cut()
	if l.server != nil {
		_ = l.server.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.fill(nil)
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

// link is a client's connection with the corresponding one to the server.
type link struct {
	proxy  *Proxy
	client net.Conn
	server net.Conn
	lose   atomic.Bool // the next bytes from the server are dropped
	once   sync.Once
	ended  chan struct{}
}

// cut closes both connections: the pump that reads from the client closes the server's.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
	})
}

// pump forwards what one end sends to the other, as far as judge allows.
func (l *link) pump(from, to net.Conn, filter func([]byte) (rest []byte, on bool)) {
	defer func() {
		l.cut()
		_ = l.server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !l.flows() {
				return
			}
			rest, on := filter(buf[:n])
			if _, failed := to.Write(rest); failed != nil || !on {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// flows waits while the proxy is paused. It returns false if the connection was closed meanwhile.
func (l *link) flows() bool {
	l.proxy.mu.Lock()
	still := l.proxy.still
	l.proxy.mu.Unlock()
	if still == nil {
		return true
	}
	select {
	case <-still:
		return true
	case <-l.ended:
		return false
	}
}

func (l *link) request(b []byte) (rest []byte, on bool) {
	decide := l.proxy.decide.Load()
	if decide == nil {
		return b, true
	}
	switch (*decide)(b) {
	case LoseRequest:
		return nil, false
	case CutShort:
		return b[:len(b)/2], false
	case LoseReply:
		l.lose.Store(true)
	}
	return b, true
}

func (l *link) reply(b []byte) (rest []byte, on bool) {
	if l.lose.Load() {
		return nil, false
	}
	if d := time.Duration(l.proxy.delay.Load()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ended:
			return nil, false
		}
	}
	return b, true
}
