// Package fleet renames the managed resources of one kind: it writes another external name to the annotation
// crossplane.io/external-name of each, and proves that the external resource is still the same.
//
// An annotation does not change metadata.generation, so no observedGeneration says that a provider has
// seen a new name. A renaming therefore has three writes, each at the resourceVersion that was read:
//
//  1. It pauses the managed resource and writes the journal. The provider answers with the managed.Condition
//     Synced=False, ReconcilePaused.
//  2. It writes the new name and the management policies [Observe], and ends the pause, in one patch. The managed.Condition
//     was ReconcilePaused at this patch, and the provider writes a status only at the resourceVersion that it has read.
//     What follows is therefore about the new name, and the provider creates, changes and deletes nothing.
//  3. It compares the identity in status.atProvider with the earlier one. Fields that the spec has, too, are no identity.
//     It gives the management policies back, and records the proof. If the identity differs, or the provider finds no
//     external resource, it writes the old name and the policies again.
//
// If the kind has no management policies, or a tool applies them from a source, the provider could create a second external
// resource in step 2: then a renaming needs [Options.AcceptUnsafe]. A provider that has begun to create writes the name of what
// it creates, also over an undo. The package then pauses the managed resource, waits until the outcome is recorded,
// writes the old name, and keeps both names in the journal until a user removes it.
//
// If the provider answers at once, a renaming takes five requests: the three writes, and a read of the provider's
// answer to each of the first two. The first write needs no read, because the API server refuses it if the managed
// resource has changed since the plan.
//
// The journal is an annotation of the managed resource itself ([AnnotationJournal]). It has the old name byte for byte,
// and the write of each step includes it. If a process is killed between two steps, the journal has the remaining
// steps: the next [Fleet.Apply] resumes them, or [Fleet.Rollback] restores the old name.
//
// Apply begins with a few canaries, continues with batches, and stops after a canary that is not renamed, or a failure.
// It writes only managed resources that the plan ([PlanFor]) allows. It skips names that a GitOps tool or a Composition owns;
// the plan has the patch for their source.
//
// The package does not call an external system, and does not import crossplane-runtime. A provider that embeds it
// passes a [Naming] of its scheme ([FromScheme]); the command line passes an expression.
//
// # Reading order
//
// kind.go reads what a CRD says of its managed resources, and journal.go reads the journal of one. fix.go has what a user can do. naming.go proposes names,
// owner.go finds the owner of a name. fact.go has the facts of a plan, users.go the users of each name, and plan.go decides what to do
// with each managed resource. unfinished.go says whether a renaming has not ended. result.go has the phases and
// reasons of a result, and fleet.go the options and the requests. step.go decides the next step of a renaming, rename.go executes
// steps, and run.go has canaries and batches. rollback.go and saved.go restore names, and store.go stores saved names in
// ConfigMaps. A file uses only files before it.
package fleet
