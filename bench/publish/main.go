// Command publish replaces the result in bench/results by a report of the benchmark and shows it in the README. It prints the path
// of the summary.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	trial := flag.Bool("trial", false, "take also a quick or incomplete report, or one of a changed tree; not to be committed")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage, from the repository's root: go run ./bench/publish [-trial] PREFIX\nPREFIX.json "+
			"and PREFIX.md are the report, such as bin/report/bench after 'make bench'.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	published, err := publish(".", flag.Arg(0), *trial)
	if err != nil {
		fmt.Fprintf(os.Stderr, "publish: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(published)
}
