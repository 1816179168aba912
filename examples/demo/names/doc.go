// Package names is the story of external names of a Crossplane provider.
package names
