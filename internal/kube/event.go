package kube

import "github.com/godwit-dev/godwit/internal/quote"

// maxNote is what the API server takes as the note of an event: 1 kB, in
// k8s.io/kubernetes/pkg/apis/core/validation.
const maxNote = 1024

// EventNote cuts a text to what the API server takes as the note of an event.
func EventNote(text string) string { return quote.Clip(text, maxNote) }
