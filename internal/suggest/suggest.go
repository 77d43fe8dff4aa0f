// Package suggest proposes the correct word for a misspelt one.
package suggest

// nearest returns the known word that is most similar, or "" if none is similar enough.
func nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// DidYouMean returns the end of an error message: a suggestion, or nothing.
func DidYouMean(word string, known []string) string {
	if s := nearest(word, known); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}

// distance counts the edits (insert, delete, replace) between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			above := row[j+1]
			row[j+1] = min(above+1, row[j]+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
