package main

import (
	"bytes"
	"errors"
	"fmt"
)

// header reads the header of a PPM frame, with the size of the whole frame in bytes.
func header(ppm []byte) (width, height, size int, err error) {
	if _, err := fmt.Fscanf(bytes.NewReader(ppm), "P6\n%d %d\n255\n", &width, &height); err != nil {
		return 0, 0, 0, fmt.Errorf("not a PPM frame: %w", err)
	}
	size = len(fmt.Sprintf("P6\n%d %d\n255\n", width, height)) + 3*width*height
	if size > len(ppm) {
		return 0, 0, 0, errors.New("a frame is cut off")
	}
	return width, height, size, nil
}

// halve averages each square of four pixels.
func halve(ppm []byte) ([]byte, error) {
	width, height, size, err := header(ppm)
	if err != nil {
		return nil, err
	}
	pixels, row := ppm[size-3*width*height:], 3*width
	small := fmt.Appendf(nil, "P6\n%d %d\n255\n", width/2, height/2)
	for y := 0; y+1 < height; y += 2 {
		for x := 0; x+1 < width; x += 2 {
			for at := y*row + 3*x; at < y*row+3*x+3; at++ { // red, green and blue
				sum := int(pixels[at]) + int(pixels[at+3]) + int(pixels[at+row]) + int(pixels[at+row+3])
				small = append(small, byte((sum+2)/4))
			}
		}
	}
	return small, nil
}
