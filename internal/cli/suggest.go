package cli

import "github.com/lubdub-io/lubdub/internal/config"

// didYouMean is the end of an error sentence: a suggestion, or nothing.
func didYouMean(word string, known []string) string { return config.DidYouMean(word, known) }
