package testbed

// failure ends a scenario.
type failure struct{ error }

// Check ends the scenario under way with err, as FailNow ends a test; nil is no failure. Only a scenario's own goroutine may call it.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must is Check for a call that returns a value too.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Try runs f to its end or to the first Check that fails, and returns that error.
func Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}
