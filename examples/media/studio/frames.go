package main

import "fmt"

// The frames of all clips.
const (
	clipFrames = 24
	width      = 64
	height     = 48
)

// frame returns a frame of a clip as PPM.
func frame(clip, number int) []byte {
	ppm := fmt.Appendf(nil, "P6\n%d %d\n255\n", width, height)
	for y := range height {
		for x := range width {
			colour := pixel(clip, number, x, y)
			ppm = append(ppm, colour[:]...)
		}
	}
	return ppm
}

// pixel returns red, green and blue: gradients that depend on the clip and move from frame to frame.
func pixel(clip, number, x, y int) [3]byte {
	return [3]byte{byte(5*x + 11*number), byte(7*y + 3*clip), byte(x*y + clip*number)}
}
