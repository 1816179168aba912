// Package pipeline runs the action for GitHub and the component for GitLab as their runners do, for tests and for the check of a
// release: it evaluates the inputs, and runs the scripts of the steps. It runs no other action, and no container.
//
// # Reading order
//
// pipeline.go has what both have in common. github.go and gitlab.go run one each, and try.go both with a release.
package pipeline
