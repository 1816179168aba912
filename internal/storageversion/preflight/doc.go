// Package preflight tries the write of a migration before a run, as a server-side dry run of
// one object in each namespace, and reports which webhook or policy denies the write,
// which one changes the objects, and how to get past both.
//
// It changes nothing, and it calls every webhook that a run would call. A warning names the
// namespaces that its limits, which are constants, left out.
//
// # Reading order
//
// result.go says what an answer means. sample.go selects the objects. defaults.go and changes.go compare an object with the
// answer, and attempt.go tries one. admissionconfig.go reads the configuration of webhooks and policies, advice.go says
// what to do, and preflight.go runs them. A file uses only files before it.
package preflight
