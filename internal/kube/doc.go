// Package kube has what every migration needs of an API server and what is no migration's
// own. It sends no request by itself.
package kube
