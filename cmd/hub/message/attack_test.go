package message

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"
)

// resigned is sealed data under another header, signed by a sender that has a key for it: a
// hub that is compromised, and not only a broker.
func resigned(h Header, sealed []byte, from Identity) Envelope {
	e := Envelope{Attributes: h.attributes(), Value: sealed}
	e.Attributes[attrSealed] = "true"
	e.Attributes[attrSignature] = base64.StdEncoding.EncodeToString(ed25519.Sign(from.private, signed(h, "true", sealed)))
	return e
}

// TestSwappedHeader: sealed data opens under the header alone that it was sealed with, also if
// the hub that signs the other header is the one that has sealed the data.
//
// Matrix: H49.
func TestSwappedHeader(t *testing.T) {
	k := newKeys(t)
	public := k.target.Key()
	original := header(TypeResource)
	sealed := write(t, original, "the secret", k.source, &public).Value
	changes := map[string]func(*Header){
		"Migration": func(h *Header) { h.Migration = "another" },
		"Attempt":   func(h *Header) { h.Attempt++ },
		"Stage":     func(h *Header) { h.Stage = "Cleaning" },
		"Batch":     func(h *Header) { h.Batch++ },
		"Left":      func(h *Header) { h.ValidFor *= 2 },
		"Total":     func(h *Header) { h.TotalClusters = 1 },
		"Type":      func(h *Header) { h.Type = TypeTarget },
		"From":      func(h *Header) { h.From = "hub3" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			swapped := original
			change(&swapped)
			if _, data, err := Read(resigned(swapped, sealed, k.source), "hub2", k.source.Key(), &k.target); !errors.Is(err, ErrNotForUs) || data != nil {
				t.Errorf("read %q, %v, want %v", data, err, ErrNotForUs)
			}
		})
	}
	if _, data, err := Read(resigned(original, sealed, k.source), "hub2", k.source.Key(), &k.target); err != nil || string(data) != "the secret" {
		t.Errorf("under its own header: %q, %v", data, err)
	}
}

// TestDowngrade: no version is read but those that this program writes, also if the sender
// signs it. The versions in a heartbeat are signed as well, so that no broker can lower
// the one on which two programs agree.
//
// Matrix: H50.
func TestDowngrade(t *testing.T) {
	k := newKeys(t)
	for _, version := range []int{0, Version + 1} {
		h := header(TypeTarget)
		h.Version = version
		e := Envelope{Attributes: h.attributes(), Value: []byte("{}")}
		e.Attributes[attrSealed] = "false"
		e.Attributes[attrSignature] = base64.StdEncoding.EncodeToString(ed25519.Sign(k.source.private, signed(h, "false", e.Value)))
		var unknown *VersionError
		if _, _, err := Read(e, "hub2", k.source.Key(), nil); !errors.As(err, &unknown) || unknown.Version != version {
			t.Errorf("version %d: %v, want an error that names it", version, err)
		}
	}
	beat := Header{Type: TypeHeartbeat, From: "hub1", To: ManagerName}
	data, err := encode(Heartbeat{Hub: "hub1", Versions: []int{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	e := write(t, beat, string(data), k.source, nil)
	e.Value = slices.Replace(slices.Clone(e.Value), len(data)-len("2]}"), len(data)-len("]}"), '1')
	var lowered Heartbeat
	if err := json.Unmarshal(e.Value, &lowered); err != nil || slices.Max(lowered.Versions) != 1 {
		t.Fatalf("the heartbeat that was changed is %s, %v", e.Value, err)
	}
	if _, _, err := Read(e, ManagerName, k.source.Key(), nil); !errors.Is(err, ErrForged) {
		t.Errorf("a heartbeat with other versions: %v, want %v", err, ErrForged)
	}
}

// TestClocksDiffer: a message names no time. Whatever the clocks of its sender and of its
// reader say, it is the same message, and is valid for the same number of seconds.
//
// Matrix: H31.
func TestClocksDiffer(t *testing.T) {
	k := newKeys(t)
	e := write(t, header(TypeTarget), "{}", k.source, nil)
	h, _, err := Read(e, "hub2", k.source.Key(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.ValidFor != header(TypeTarget).ValidFor || e.Attributes[attrExpire] != strconv.Itoa(int(h.ValidFor.Seconds())) {
		t.Errorf("%s left, attribute %s, want %s", h.ValidFor, e.Attributes[attrExpire], header(TypeTarget).ValidFor)
	}
	if _, ok := e.Attributes["ce_time"]; ok {
		t.Error("the message has the time of its sender, which no reader may compare with its own")
	}
}
