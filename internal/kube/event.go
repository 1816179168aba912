package kube

import "github.com/godwit-dev/godwit/internal/quote"

// maxNote bounds the note of an event, in bytes: NoteLengthLimit of
// k8s.io/kubernetes/pkg/apis/core/validation.
const maxNote = 1024

// EventNote cuts a text to the longest note of an event that the API server accepts.
func EventNote(text string) string { return quote.Clip(text, maxNote) }
