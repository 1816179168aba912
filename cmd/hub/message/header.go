package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Version is the version of the envelope. Every message has it, so that the format can change.
const Version = 1

// Type is the type of a CloudEvent: it names the bundle.
type Type string

// Types of bundles.
const (
	TypeSource    Type = "dev.godwit.hub.MigrationSourceBundle"
	TypeTarget    Type = "dev.godwit.hub.MigrationTargetBundle"
	TypeStatus    Type = "dev.godwit.hub.MigrationStatusBundle"
	TypeResource  Type = "dev.godwit.hub.MigrationResourceBundle"
	TypeHeartbeat Type = "dev.godwit.hub.Heartbeat"
)

var types = []Type{TypeSource, TypeTarget, TypeStatus, TypeResource, TypeHeartbeat}

// SpecTopic returns the topic of the commands to a hub. Only this hub may read it.
func SpecTopic(hub string) string { return "godwit.hub." + hub + ".spec" }

// StatusTopic returns the topic of the reports of a hub. Only this hub may write it.
func StatusTopic(hub string) string { return "godwit.hub." + hub + ".status" }

// MigrationTopic returns the topic of the resources for a target. Every source may write it.
func MigrationTopic(target string) string { return "godwit.migration." + target }

// Header is the header of a message. It is authenticated, and the broker can read it.
type Header struct {
	Version int
	Type    Type
	// Migration is the UID of the ManagedClusterMigration; empty in a heartbeat.
	Migration string
	// From and To are the names of hubs; [ManagerName] is the manager's.
	From, To string
	Stage    api.Phase
	Attempt  int64
	// Batch numbers the messages of a bundle that was split.
	Batch int
	// ValidFor is how long the message is valid, in whole seconds. It counts from the receipt, because clocks differ.
	ValidFor time.Duration
	// TotalClusters is the number of clusters of the migration, in a resource bundle.
	TotalClusters int
}

// ManagerName is the manager's name in a header. No hub can have it: it is not a valid name of a ManagedCluster.
const ManagerName = "global-hub/manager"

// Names of the attributes. CloudEvents prefixes them with ce_ in a message of Kafka.
const (
	prefix        = "ce_"
	attrSpec      = prefix + "specversion"
	attrID        = prefix + "id"
	attrSource    = prefix + "source"
	attrSubject   = prefix + "subject"
	attrType      = prefix + "type"
	attrVersion   = prefix + "envelopeversion"
	attrMigration = prefix + "migrationid"
	attrStage     = prefix + "stage"
	attrAttempt   = prefix + "attempt"
	attrBatch     = prefix + "batch"
	attrExpire    = prefix + "expiretime"
	attrTotal     = prefix + "totalclusters"
	attrSignature = prefix + "signature"
	attrSealed    = prefix + "sealed"

	specVersion = "1.0"
	// maxAttribute bounds each attribute, in bytes.
	maxAttribute = 512
)

// attributes writes the header as attributes of a CloudEvent.
func (h Header) attributes() map[string]string {
	return map[string]string{
		attrSpec: specVersion,
		// A command that is sent again is the same event.
		attrID:     fmt.Sprintf("%s/%s/%d/%s/%d", h.Migration, h.Stage, h.Attempt, h.From, h.Batch),
		attrSource: h.From, attrSubject: h.To, attrType: string(h.Type), attrVersion: strconv.Itoa(h.Version),
		attrMigration: h.Migration, attrStage: string(h.Stage), attrAttempt: strconv.FormatInt(h.Attempt, 10),
		attrBatch: strconv.Itoa(h.Batch), attrExpire: strconv.FormatInt(int64(h.ValidFor/time.Second), 10), attrTotal: strconv.Itoa(h.TotalClusters),
	}
}

// parseHeader parses attributes. It refuses anything that [Header.attributes] does not write.
func parseHeader(attributes map[string]string) (Header, error) {
	for name, value := range attributes {
		if len(value) > maxAttribute {
			return Header{}, fmt.Errorf("attribute %s has %d bytes, more than %d", name, len(value), maxAttribute)
		}
	}
	h := Header{
		Type: Type(attributes[attrType]), Migration: attributes[attrMigration],
		From: attributes[attrSource], To: attributes[attrSubject], Stage: api.Phase(attributes[attrStage]),
	}
	number := func(name string) (n int64) {
		n, err := strconv.ParseInt(attributes[name], 10, 32)
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	h.Version, h.Attempt, h.Batch = int(number(attrVersion)), number(attrAttempt), int(number(attrBatch))
	h.ValidFor, h.TotalClusters = time.Duration(number(attrExpire))*time.Second, int(number(attrTotal))
	switch {
	case attributes[attrSpec] != specVersion:
		return Header{}, fmt.Errorf("no CloudEvent of version %s", specVersion)
	case h.Version != Version:
		return Header{}, &VersionError{Version: h.Version}
	case !slices.Contains(types, h.Type):
		return Header{}, fmt.Errorf("unknown type %q", h.Type)
	case min(h.Attempt, int64(h.Batch), int64(h.ValidFor), int64(h.TotalClusters)) < 0:
		return Header{}, errors.New("a number is missing or malformed")
	case h.Type != TypeHeartbeat && (h.Migration == "" || hub.StageNumber(h.Stage) == 0):
		return Header{}, fmt.Errorf("no migration or no stage: %q, %q", h.Migration, h.Stage)
	}
	for name, value := range h.attributes() {
		if attributes[name] != value {
			return Header{}, fmt.Errorf("attribute %s is %q, want %q", name, attributes[name], value)
		}
	}
	return h, nil
}

// VersionError is a message of an envelope that this program can't read.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("version %d of the envelope is unknown, this program reads version %d", e.Version, Version)
}

// authenticated returns the canonical form of the header, which is signed, and which the encryption authenticates. Each
// field is preceded by its length.
func (h Header) authenticated() []byte {
	attributes := h.attributes()
	names := make([]string, 0, len(attributes))
	for name := range attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	out := []byte("godwit hub envelope 1")
	for _, name := range names {
		for _, text := range []string{name, attributes[name]} {
			out = binary.BigEndian.AppendUint32(out, uint32(len(text))) //nolint:gosec // attributes are short
			out = append(out, text...)
		}
	}
	return out
}
