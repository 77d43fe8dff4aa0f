// Package evloop serves connections without a goroutine for each: a loop waits for all its connections at once, reads what has arrived,
// passes it to its Handler, and writes the answers when they are ready. A request that the handler does not know is handed over: a
// goroutine serves the connection as a net.Conn until the request has been answered, and then gives it back.
//
// The package knows nothing of HTTP, routes or tokens. It needs epoll, so it is empty on systems other than Linux.
package evloop
