package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// plain is a client as authors write it by hand on crossplane-runtime. Its functions are what
// authors get wrong.
type plain[F comparable] struct {
	managed.NopClient

	to        directory
	kube      client.Client
	toEntry   func(F) entry
	fromEntry func(entry) F

	// id reads an external name, and name writes one.
	id   func(name string) (string, error)
	name func(entry) (string, error)
	// check refuses a spec whose key can't be a name.
	check func(F) error
	// looksUp reports whether the object is looked up by its spec, by find. choose takes one
	// of the matches.
	looksUp func(mg resource.Managed) bool
	find    func(ctx context.Context, f F) ([]entry, error)
	choose  func([]entry) (entry, error)
	// isMissing reports whether an error means that the entry does not exist.
	isMissing func(error) bool
	// same compares what was found with the spec.
	same func(observed, desired F) bool
	// toDelete returns the IDs of the entries to delete, nil for the one that the external name identifies.
	toDelete func(ctx context.Context, o *object[F]) ([]string, error)
	// observed is called with what was found.
	observed func(ctx context.Context, o *object[F], e entry) error
}

func (p *plain[F]) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	o := mg.(*object[F])
	e, err := p.read(ctx, o)
	if err != nil && p.isMissing(err) {
		return managed.ExternalObservation{}, nil
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	o.Status.AtProvider = p.fromEntry(e)
	if o.SetConditions(xpv2.Available()); e.State == crossplane.Deleting {
		o.SetConditions(xpv2.Deleting())
	}
	if p.observed != nil {
		if err := p.observed(ctx, o, e); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	observation := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	if observed := p.fromEntry(e); !p.same(observed, o.Spec.ForProvider) {
		observation.ResourceUpToDate = false
		observation.Diff = fmt.Sprintf("observed %+v, desired %+v", observed, o.Spec.ForProvider)
	}
	return observation, nil
}

func (p *plain[F]) read(ctx context.Context, o *object[F]) (entry, error) {
	if p.looksUp(o) {
		found, err := p.find(ctx, o.Spec.ForProvider)
		if err != nil {
			return entry{}, err
		}
		e, err := p.choose(found)
		if err != nil {
			return entry{}, err
		}
		name, err := p.name(e)
		meta.SetExternalName(o, name)
		return e, err
	}
	id, err := p.id(meta.GetExternalName(o))
	if err != nil {
		return entry{}, err
	}
	return p.to.Read(ctx, id)
}

func (p *plain[F]) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	o := mg.(*object[F])
	if err := p.check(o.Spec.ForProvider); err != nil {
		return managed.ExternalCreation{}, err
	}
	made, err := p.to.Add(ctx, p.toEntry(o.Spec.ForProvider))
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	name, err := p.name(made)
	meta.SetExternalName(o, name)
	return managed.ExternalCreation{}, err
}

func (p *plain[F]) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	o := mg.(*object[F])
	id, err := p.id(meta.GetExternalName(o))
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	written, err := p.to.Write(ctx, id, p.toEntry(o.Spec.ForProvider))
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	name, err := p.name(written)
	meta.SetExternalName(o, name)
	return managed.ExternalUpdate{}, err
}

func (p *plain[F]) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	if p.toDelete != nil {
		ids, err := p.toDelete(ctx, mg.(*object[F]))
		for _, id := range ids {
			err = errors.Join(err, p.to.Remove(ctx, id))
		}
		return managed.ExternalDelete{}, err
	}
	id, err := p.id(meta.GetExternalName(mg))
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, p.to.Remove(ctx, id)
}

func equal[F comparable](observed, desired F) bool { return observed == desired }

func isNotFound(err error) bool { return errors.Is(err, crossplane.ErrNotFound) }

// onlyMatch takes the only match.
func onlyMatch(found []entry) (entry, error) {
	switch len(found) {
	case 0:
		return entry{}, crossplane.ErrNotFound
	case 1:
		return found[0], nil
	}
	return entry{}, fmt.Errorf("%d entries match", len(found))
}

var personScheme = externalname.Scheme[string]{
	Codec:  externalname.GUID(),
	Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
}

func plainPerson(d directory) *plain[personParameters] {
	return &plain[personParameters]{
		to:        d,
		toEntry:   func(f personParameters) entry { return entry{Name: f.Name, Mail: f.Mail, Title: f.Title} },
		fromEntry: func(e entry) personParameters { return personParameters{Name: e.Name, Mail: e.Mail, Title: e.Title} },
		id:        externalname.GUID().ParseLenient,
		name:      func(e entry) (string, error) { return externalname.GUID().Format(e.ID) },
		check:     func(personParameters) error { return nil },
		looksUp:   func(mg resource.Managed) bool { return meta.GetExternalName(mg) == mg.GetName() },
		find: func(ctx context.Context, f personParameters) ([]entry, error) {
			return d.Search(ctx, entry{Mail: f.Mail})
		},
		choose:    onlyMatch,
		isMissing: isNotFound,
		same:      equal[personParameters],
	}
}

func plainMembership(d directory) *plain[membershipParameters] {
	name := func(e entry) (string, error) { return memberNames.Format(member{Group: e.Parent, Member: e.Name}) }
	toEntry := func(f membershipParameters) entry { return entry{Parent: f.Group, Name: f.Member, Title: f.Title} }
	return &plain[membershipParameters]{
		to:      d,
		toEntry: toEntry,
		fromEntry: func(e entry) membershipParameters {
			return membershipParameters{Group: e.Parent, Member: e.Name, Title: e.Title}
		},
		id: func(text string) (string, error) {
			key, err := memberNames.ParseLenient(text)
			return memberID(entry{Parent: key.Group, Name: key.Member}), err
		},
		name:      name,
		check:     func(f membershipParameters) error { _, err := name(toEntry(f)); return err },
		looksUp:   func(resource.Managed) bool { return false },
		isMissing: isNotFound,
		same:      equal[membershipParameters],
	}
}

// rule is one that a plain client adopts by Wrap.
type rule struct {
	name string
	rule crossplane.Rule
}

// rules are those that make a plain client follow the contract.
func rules[K any](m manager.Manager, scheme externalname.Scheme[K]) []rule {
	recorder := event.NewAPIRecorder(m.GetEventRecorderFor("conformance"))
	return []rule{
		{"UnnamedIsAbsent", crossplane.UnnamedIsAbsent()},
		{"NamesMustParse", crossplane.NamesMustParse(scheme)},
		{"AbsentNeedsCreate", crossplane.AbsentNeedsCreate()},
		{"DiffIsReported", crossplane.DiffIsReported(recorder)},
		{"NamesArePersisted", crossplane.NamesArePersisted(m)},
		{"ObserveKeepsSpec", crossplane.ObserveKeepsSpec()},
		{"FailedCreateKeepsName", crossplane.FailedCreateKeepsName()},
		{"DeleteAcceptsNotFound", crossplane.DeleteAcceptsNotFound(isNotFound)},
		{"DeleteOnce", crossplane.DeleteOnce(func(mg resource.Managed) bool {
			return mg.GetCondition(xpv2.TypeReady).Reason == xpv2.ReasonDeleting
		})},
		{"ConflictsAreReported", crossplane.ConflictsAreReported()},
	}
}

// bareProvider is a client without its reconciler, as the kit takes one.
func bareProvider(kind string, connect func(m manager.Manager) managed.ExternalClient) conformance.Provider {
	return conformance.Provider{
		AddToScheme: addToScheme,
		Kind:        groupVersion.WithKind(kind),
		Options: func(m manager.Manager) []managed.ReconcilerOption {
			return []managed.ReconcilerOption{
				managed.WithCriticalAnnotationUpdater(crossplane.AnnotationUpdater(m)),
				managed.WithFinalizer(crossplane.Finalizer(m)),
			}
		},
		Client: func(m manager.Manager) (managed.ExternalConnector, error) {
			c := connect(m)
			return managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) { return c, nil }), nil
		},
	}
}

// wrapped adopts all rules but some.
func wrapped(c managed.ExternalClient, list []rule, without ...string) managed.ExternalClient {
	var adopted []crossplane.Rule
	for _, r := range list {
		if !slices.Contains(without, r.name) {
			adopted = append(adopted, r.rule)
		}
	}
	return crossplane.Wrap(c, adopted...)
}
