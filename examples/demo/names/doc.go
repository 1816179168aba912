// Package names is the story of a Crossplane provider's external names.
package names
