package testbed

// failure ends a scenario.
type failure struct{ error }

// Check ends the current scenario with err, as FailNow ends a test, unless it is nil. Only a scenario's own goroutine may call it.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must is Check for a call that also returns a value.
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
