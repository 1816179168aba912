package slapd_test

import (
	"errors"
	"net"
	"testing"

	"github.com/godwit-dev/godwit/test/slapd"
)

func TestStartAndStop(t *testing.T) {
	server, err := slapd.Start(t.Context())
	if errors.Is(err, slapd.ErrMissing) && !slapd.Required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", server.Address()); err == nil {
		t.Error("slapd listens after Stop", conn.Close())
	}
}

// In CI nothing is skipped because of a program that is missing.
func TestRequired(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": false} {
		t.Setenv("CI", value)
		if got := slapd.Required(); got != want {
			t.Errorf("CI=%q: required is %t", value, got)
		}
	}
}
