// Package managed reads managed resources, and writes their annotations and management policies. It decides nothing.
package managed
