// Package mutants plants bugs and sees whether the tests notice. Each mutant is one small wrong edit, as a tired
// programmer could make it; it is applied to a copy, the tests that are there for it run, and at least one must fail.
// A mutant that survives, or whose text is no longer in its file, fails TestLongMutants.
package mutants
