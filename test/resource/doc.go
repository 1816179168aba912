// Package resource has tests only: rewriting Secrets after a change of the encryption key, on real API servers and etcd.
package resource
