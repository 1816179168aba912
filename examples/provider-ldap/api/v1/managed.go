package v1

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reference"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	_ resource.ModernManaged = &Person{}
	_ resource.ModernManaged = &Group{}
	_ resource.ModernManaged = &Membership{}
)

// ResolveReferences writes the external name of the Group that groupRef names. crossplane-runtime
// calls it before each observation.
func (m *Membership) ResolveReferences(ctx context.Context, c client.Reader) error {
	f := &m.Spec.ForProvider
	resolved, err := reference.NewAPINamespacedResolver(c, m).Resolve(ctx, reference.NamespacedResolutionRequest{
		CurrentValue: f.Group, Reference: f.GroupRef, To: reference.To{Managed: &Group{}}, Extract: reference.ExternalName(),
	})
	if err != nil {
		return fmt.Errorf("spec.forProvider.groupRef: %w", err)
	}
	f.Group, f.GroupRef = resolved.ResolvedValue, resolved.ResolvedReference
	return nil
}

// The methods of resource.ModernManaged follow. Crossplane's angryjet generates the same.

// GetCondition returns a condition of the status.
func (p *Person) GetCondition(t xpv2.ConditionType) xpv2.Condition { return p.Status.GetCondition(t) }

// SetConditions sets conditions of the status.
func (p *Person) SetConditions(c ...xpv2.Condition) { p.Status.SetConditions(c...) }

// GetManagementPolicies returns what may be done with the external resource.
func (p *Person) GetManagementPolicies() xpv2.ManagementPolicies { return p.Spec.ManagementPolicies }

// SetManagementPolicies sets what may be done with the external resource.
func (p *Person) SetManagementPolicies(l xpv2.ManagementPolicies) { p.Spec.ManagementPolicies = l }

// GetProviderConfigReference names the ProviderConfig.
func (p *Person) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return p.Spec.ProviderConfigReference
}

// SetProviderConfigReference names the ProviderConfig.
func (p *Person) SetProviderConfigReference(ref *xpv2.ProviderConfigReference) {
	p.Spec.ProviderConfigReference = ref
}

// GetWriteConnectionSecretToReference names the connection secret.
func (p *Person) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return p.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference names the connection secret.
func (p *Person) SetWriteConnectionSecretToReference(ref *xpv2.LocalSecretReference) {
	p.Spec.WriteConnectionSecretToReference = ref
}

// GetCondition returns a condition of the status.
func (g *Group) GetCondition(t xpv2.ConditionType) xpv2.Condition { return g.Status.GetCondition(t) }

// SetConditions sets conditions of the status.
func (g *Group) SetConditions(c ...xpv2.Condition) { g.Status.SetConditions(c...) }

// GetManagementPolicies returns what may be done with the external resource.
func (g *Group) GetManagementPolicies() xpv2.ManagementPolicies { return g.Spec.ManagementPolicies }

// SetManagementPolicies sets what may be done with the external resource.
func (g *Group) SetManagementPolicies(l xpv2.ManagementPolicies) { g.Spec.ManagementPolicies = l }

// GetProviderConfigReference names the ProviderConfig.
func (g *Group) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return g.Spec.ProviderConfigReference
}

// SetProviderConfigReference names the ProviderConfig.
func (g *Group) SetProviderConfigReference(ref *xpv2.ProviderConfigReference) {
	g.Spec.ProviderConfigReference = ref
}

// GetWriteConnectionSecretToReference names the connection secret.
func (g *Group) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return g.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference names the connection secret.
func (g *Group) SetWriteConnectionSecretToReference(ref *xpv2.LocalSecretReference) {
	g.Spec.WriteConnectionSecretToReference = ref
}

// GetCondition returns a condition of the status.
func (m *Membership) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return m.Status.GetCondition(t)
}

// SetConditions sets conditions of the status.
func (m *Membership) SetConditions(c ...xpv2.Condition) { m.Status.SetConditions(c...) }

// GetManagementPolicies returns what may be done with the external resource.
func (m *Membership) GetManagementPolicies() xpv2.ManagementPolicies {
	return m.Spec.ManagementPolicies
}

// SetManagementPolicies sets what may be done with the external resource.
func (m *Membership) SetManagementPolicies(l xpv2.ManagementPolicies) { m.Spec.ManagementPolicies = l }

// GetProviderConfigReference names the ProviderConfig.
func (m *Membership) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return m.Spec.ProviderConfigReference
}

// SetProviderConfigReference names the ProviderConfig.
func (m *Membership) SetProviderConfigReference(ref *xpv2.ProviderConfigReference) {
	m.Spec.ProviderConfigReference = ref
}

// GetWriteConnectionSecretToReference names the connection secret.
func (m *Membership) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return m.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference names the connection secret.
func (m *Membership) SetWriteConnectionSecretToReference(ref *xpv2.LocalSecretReference) {
	m.Spec.WriteConnectionSecretToReference = ref
}
