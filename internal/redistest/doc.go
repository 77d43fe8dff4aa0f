// Package redistest provides tests with the stores that Lubdub runs on: miniredis in the process and a private, real redis-server, both
// empty and with a clock that the test controls. With -short, tests that need a real server are skipped. It is for tests only; a test
// of the import graph checks that nothing else imports it.
package redistest
