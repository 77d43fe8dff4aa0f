// Package suggest proposes the word that a misspelt one was most likely meant to be.
package suggest

// nearest returns the known word that was most likely meant, or none when nothing is near.
func nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// DidYouMean is the end of an error sentence: a suggestion, or nothing.
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
