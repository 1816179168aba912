// Package features has the features of the provider.
package features

import "github.com/crossplane/crossplane-runtime/v2/pkg/feature"

const (
	// EnableBetaManagementPolicies enables spec.managementPolicies. The name is the one that Upjet's template uses.
	EnableBetaManagementPolicies = feature.EnableBetaManagementPolicies
	// Contract makes the kinds follow the contract of external names.
	Contract feature.Flag = "Contract"
)
