// Package conn manages a server's connections: how many may be open and which are closed for new ones, their deadlines, and how much
// memory the bodies that they announce may take. It knows nothing of HTTP, routes or tokens, nor what is answered on a connection
// that is refused or cut; package api reports which connections have shown a token.
//
// Each connection belongs to one Watch, whose single goroutine enforces deadlines while there is a connection.
package conn
