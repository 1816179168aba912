package main

import (
	"strings"
	"time"
)

const (
	// idle is the longest time in which nothing happens.
	idle = 1200 * time.Millisecond
	// line is the time between two lines that came at once. A reader follows ten lines a second.
	line = 100 * time.Millisecond
	// part is the time between two other outputs.
	part = 60 * time.Millisecond
	// redrawn is the longest time of a bar, a series of outputs that are drawn over each other.
	redrawn = 4 * time.Second
	// length is the longest time of the SVG, with hold.
	length = 28 * time.Second
	// hold is the time of the end, before the SVG begins again.
	hold = 4 * time.Second
)

// pace gives the events the times of the SVG.
func pace(events []event) (paced []event) {
	var at, before time.Duration
	for _, e := range shortened(events) {
		at += min(e.at-before, idle)
		before = e.at
		for text := range strings.SplitAfterSeq(e.text, "\n") {
			if text == "" {
				continue
			}
			paced = append(paced, event{at, text})
			if strings.HasSuffix(text, "\n") {
				at += line
			} else {
				at += part
			}
		}
	}
	if longest := length - hold; at > longest {
		for i := range paced {
			paced[i].at = time.Duration(float64(paced[i].at) * float64(longest) / float64(at))
		}
	}
	return paced
}

// up begins an output that is drawn over the line before.
const up = "\x1b[1A"

// shortened makes bars quick: it leaves out drawings that would follow another within 100 ms.
func shortened(events []event) (short []event) {
	var cut time.Duration // all that was cut so far
	for i := 0; i < len(events); {
		end := i
		for end < len(events) && strings.HasPrefix(events[end].text, up) {
			end++
		}
		if end == i {
			short = append(short, event{events[i].at - cut, events[i].text})
			i++
			continue
		}
		began, lasts := events[i].at, events[end-1].at-events[i].at
		factor := min(1, float64(redrawn)/float64(max(1, lasts)))
		var last time.Duration
		for n, e := range events[i:end] {
			at := began - cut + time.Duration(float64(e.at-began)*factor)
			// The last output ends the bar, and an output of several lines has text above the bar: keep both.
			if n > 0 && n < end-i-1 && at-last < 100*time.Millisecond && strings.Count(e.text, "\n") < 2 {
				continue
			}
			short, last = append(short, event{at, e.text}), at
		}
		cut += lasts - time.Duration(float64(lasts)*factor)
		i = end
	}
	return short
}
