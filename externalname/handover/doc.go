// Package handover moves external resources from managed resources of one kind to managed resources of another kind, such as from
// the cluster-scoped kind of a provider of Crossplane v1 to the namespaced kind of its release for Crossplane v2. At each
// moment at most one of the two may create, change or delete the external resource.
//
// A handover has four steps, each a patch at the resourceVersion that was read:
//
//  1. The replacement is paused, by the user who has created it. It gets the external name and the management policies [Observe], and
//     its pause ends. Its provider reads the external resource, and reports success or why it finds none.
//  2. The fields of status.atProvider that identify the external resource are compared with those of the original. If they are
//     equal, the original is paused. Otherwise the replacement is paused again, without the name, and only observes; the original is as it was.
//  3. When the provider has reported the pause of the original, the original gets the management policies [Observe], and its pause
//     ends: from now on its deletion leaves the external resource alone.
//  4. The replacement gets its management policies back.
//
// An annotation of each of the two ([AnnotationHandover]) has what the handover changed there. If a process is killed between
// two steps, [Handover.Run] continues, or [Handover.Rollback] returns the external resource to the original.
//
// # Reading order
//
// journal.go reads the annotation, and side.go the two managed resources. reason.go has the reasons of a result. step.go decides the
// next step of a handover, and back.go that of a rollback. handover.go has the options and the requests, and run.go
// executes the steps. A file uses only files before it.
package handover
