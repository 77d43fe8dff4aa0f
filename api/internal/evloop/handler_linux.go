package evloop

// Handler knows what is spoken on a loop's connections. All methods are called on the loop's one goroutine: none may block, and
// whatever one of them takes holds up every connection of the loop.
type Handler interface {
	// Read looks at what a connection has unread, from the first byte of a request on. The bytes are the loop's, and good until
	// Read returns: what must outlive that is copied. What n means, Next says.
	Read(c *Conn, unread []byte) (n int, next Next)
	// Landed takes what Post brought.
	Landed(done any)
	// Turn ends a turn of the loop: all that was ready has been read. What was collected is sent now.
	Turn()
}

// Next is what becomes of a connection when its Handler has looked at what is unread.
type Next int

const (
	// More asks for the rest of a request: Read is called again, from the request's first byte on, when n bytes are unread
	// (0: with the next one). A request that would take more than Config.MaxRequest is handed over.
	More Next = iota
	// Begun says that a request of n bytes is under way. Until Conn.Answer the connection is left alone: what comes behind
	// waits, so that answers have the order of their requests.
	Begun
	// HandOver gives the connection, with all of the unread bytes, to a goroutine of its own for this request. n means nothing.
	HandOver
)
