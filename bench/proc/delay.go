package proc

import (
	"io"
	"net"
	"time"
)

// StartDelay listens on a free loopback port until it is closed, and forwards everything to a server at address and back, with a delay. It
// does not limit the throughput: as much may be under way as client and server send.
func StartDelay(address string, each time.Duration) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far, each)
			go pass(far, near, each)
		}
	}()
	return ln, nil
}

type delayed struct {
	at   time.Time
	data []byte
}

func pass(from, to net.Conn, each time.Duration) {
	queue := make(chan delayed, 1024)
	go func() {
		defer to.Close()
		for l := range queue {
			time.Sleep(time.Until(l.at))
			if _, err := to.Write(l.data); err != nil {
				_ = from.Close()
				_, _ = io.Copy(io.Discard, from)
			}
		}
	}()
	defer close(queue)
	for {
		data := make([]byte, 64<<10)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		queue <- delayed{time.Now().Add(each), data[:n]}
	}
}
