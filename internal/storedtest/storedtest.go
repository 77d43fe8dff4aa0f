// Package storedtest contains the common part of the packages' fuzz tests of stored data.
package storedtest

import "testing"

// Read fuzzes a function that parses stored text: any text must give a value or an error.
func Read(f *testing.F, read func(t *testing.T, text string)) {
	f.Helper()
	for _, text := range []string{
		"acme/prod/q//mail///1768471200000/task_1/2000/run_1", "acme/prod/q/w/t/r/l/", "wkr_1/acme/prod/task_1#1.f3nc/2000/run_1/mark",
		"30000\t17\t\"user\"", "1\tw\t5\t\"x\"",
		"3:3:1000:2:60000", "1\t\tw\t1\t2\t3\tZOMBIE\tHEARTBEAT_TIMEOUT", "a/b/c#1.f", "task\tc\t\"reason\"", "", "////////////", "\t\t\t\t",
	} {
		f.Add(text)
	}
	f.Fuzz(read)
}
