package holdings

// How sweepers share the work and how much they take at once.
const (
	recoverTakes = 25 // the same of what ended workers held
)
