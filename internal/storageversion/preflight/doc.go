// Package preflight tries the write of a migration before a run, as a server-side dry run of
// one object in each namespace, and reports which webhook or policy denies the write,
// which one changes the objects, and how to get past both.
//
// It changes nothing, and it calls every webhook that a run would call. A warning names the
// namespaces that its limits, which are constants, left out.
//
// Read preflight.go, which runs it; sample.go, which chooses the objects; attempt.go, which
// tries one, with defaults.go and changes.go to compare it; admissionconfig.go, which reads
// the configuration of webhooks and policies; result.go, which says what an answer means; and
// advice.go, which says what to do. Each file uses only files after it, and result.go.
package preflight
