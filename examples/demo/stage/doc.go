// Package stage has the parts that all stories of the demo share: a control plane, the program that they run, the text that they
// print, and the claims that they check.
package stage
