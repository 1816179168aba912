// Package crd contains the CustomResourceDefinition of ManagedClusterMigrations, for programs that install it.
package crd

import _ "embed" // for the CustomResourceDefinition

// ManagedClusterMigrations is the CustomResourceDefinition as YAML.
//
//go:embed global-hub.open-cluster-management.io_managedclustermigrations.yaml
var ManagedClusterMigrations []byte
