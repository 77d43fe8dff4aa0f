// Package redistest provides tests with the stores that Lubdub runs on: miniredis in the process and a private, real
// redis-server, both empty and with a clock in the test's hand. With -short, the quick loop, tests that need a real server are
// skipped. It is for tests only; a test over the import graph holds that nothing else imports it.
package redistest
