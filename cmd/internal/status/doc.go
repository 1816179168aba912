// Package status writes the status of the objects that a manager reconciles: what a pass amounts to becomes conditions and an
// event, and a patch. It knows no kind.
//
// A reconciler makes a [Summary] of a pass. [Summary.Apply] renders it into the conditions Ready, Reconciling and Stalled, as
// kstatus reads them. A [Writer] patches the status, and bounds how often progress is written.
//
// Read summary.go, event.go, error.go, then writer.go and follow.go.
package status
