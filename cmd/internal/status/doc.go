// Package status writes the status of the objects that a manager reconciles: it converts the result of a pass to
// conditions, an event, and a patch. It works for all kinds.
//
// A reconciler returns a [Summary] of a pass. [Summary.Apply] sets the conditions Ready, Reconciling and Stalled for
// kstatus. A [Writer] patches the status, and bounds how often progress is written.
//
// Read summary.go, event.go, error.go, then writer.go and follow.go.
package status
