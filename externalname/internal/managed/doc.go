// Package managed reads managed resources, and describes the changes of their annotations and management policies. It decides nothing.
package managed
