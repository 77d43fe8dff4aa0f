package evloop

// Handler implements the protocol of a loop's connections. All methods are called on the loop's goroutine: none may block, and the time
// that one takes delays every connection of the loop.
type Handler interface {
	// Read inspects a connection's unread bytes, from the first byte of a request on. The bytes are valid until Read returns: the
	// handler must copy what it keeps. Next describes n.
	Read(c *Conn, unread []byte) (n int, next Next)
	// Receive receives a value passed to Post.
	Receive(done any)
	// Turn ends a turn of the loop: everything that was ready has been read. The handler now sends what it has collected.
	Turn()
}

// Next is what the loop does with a connection after its Handler has inspected the unread bytes.
type Next int

const (
	// More waits for the rest of a request: Read is called again, from the request's first byte on, when n bytes are unread (0: one more
	// than now). A request that would exceed Config.MaxRequest is handed over.
	More Next = iota
	// Begun means that a request of n bytes is under way. The loop does not read further requests of the connection until Conn.Answer, so
	// answers have the order of their requests.
	Begun
	// HandOff passes the connection, with all unread bytes, to a goroutine for this request. n is ignored.
	HandOff
)
