// Package evloop serves connections without a goroutine each: a loop waits for all of its connections at once, reads what has
// come, has its Handler begin what the bytes ask for, and writes the answers when they are there. What the handler does not know
// is handed over: a goroutine serves the connection, as a net.Conn, until its request has been answered, and gives it back.
//
// It knows nothing of HTTP, routes or tokens. It needs epoll, so there is nothing of it on other systems than Linux.
package evloop
