// Package evidence reads what a managed resource says about its external resource, whatever its provider is built with:
// whether one was created, which one it is, and whether two managed resources have the same one. It sends no request.
//
// A provider may break each convention, so the package distinguishes what is certain from what is likely.
package evidence
