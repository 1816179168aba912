package rejoin

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/format"
)

// annotationRecord of a Klusterlet has its [Record]. The update that changes the Klusterlet also writes it.
const annotationRecord = "godwit.dev/rejoin"

// endless is the grace period from which on the work agent evicts nothing; 100 years is its own bound.
const endless = 100 * 365 * 24 * time.Hour

// Record is what a Klusterlet had before the cluster was brought to another hub.
type Record struct {
	// Eviction is what the Klusterlet had of the eviction of works; nil if it was not changed.
	Eviction *Eviction `json:"eviction,omitempty"`
	// Secrets had the bootstrap kubeconfigs of several hubs.
	Secrets []string `json:"secrets,omitempty"`
}

// Eviction is the former configuration of the work agent.
type Eviction struct {
	// Period is nil if the Klusterlet had none.
	Period *metav1.Duration `json:"period,omitempty"`
	// Created means that the Klusterlet had no configuration of its work agent.
	Created bool `json:"created,omitempty"`
}

// storedRecord is the content of the annotation.
type storedRecord struct {
	Format int `json:"format"`
	Record
}

// recordOf reads the record of a Klusterlet. It is empty without one.
func recordOf(k *operatorv1.Klusterlet) (Record, error) {
	var s storedRecord
	text, ok := k.Annotations[annotationRecord]
	if !ok {
		return s.Record, nil
	}
	if err := cluster.CheckFormat(k, annotationRecord); err != nil {
		return s.Record, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s.Record, cluster.Fail(cluster.ReasonForeignObject, "annotation %s of Klusterlet %s can't be read: %v", annotationRecord, k.Name, err)
	}
	return s.Record, nil
}

// save writes the record to a Klusterlet, or removes it when it is empty.
func (r Record) save(k *operatorv1.Klusterlet) error {
	annotations := maps.Clone(k.Annotations)
	delete(annotations, annotationRecord)
	if r.Eviction != nil || len(r.Secrets) > 0 {
		text, err := json.Marshal(storedRecord{format.Current, r})
		if err != nil {
			return fmt.Errorf("save what Klusterlet %s had: %w", k.Name, err)
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationRecord] = string(text)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	k.Annotations = annotations
	return nil
}

// isProtected reports whether the work agent evicts nothing.
func isProtected(k *operatorv1.Klusterlet) bool {
	w := k.Spec.WorkConfiguration
	return w != nil && w.AppliedManifestWorkEvictionGracePeriod != nil && w.AppliedManifestWorkEvictionGracePeriod.Duration >= endless
}

// protect has the work agent evict nothing, and records what it did before. A repeated call keeps the first record.
func (r *Record) protect(k *operatorv1.Klusterlet) {
	w := k.Spec.WorkConfiguration
	created := w == nil
	if created {
		w = &operatorv1.WorkAgentConfiguration{}
		k.Spec.WorkConfiguration = w
	}
	if r.Eviction == nil {
		r.Eviction = &Eviction{Period: w.AppliedManifestWorkEvictionGracePeriod, Created: created}
	}
	w.AppliedManifestWorkEvictionGracePeriod = &metav1.Duration{Duration: endless}
}

// defaults are what the API server adds to an empty configuration of the work agent.
var defaults = operatorv1.WorkAgentConfiguration{KubeAPIQPS: 50, KubeAPIBurst: 100, HubKubeAPIQPS: 50, HubKubeAPIBurst: 100}

// restore gives a Klusterlet the eviction that it had. It keeps a grace period that a user has set since.
func (r *Record) restore(k *operatorv1.Klusterlet) {
	if e := r.Eviction; e != nil && isProtected(k) {
		k.Spec.WorkConfiguration.AppliedManifestWorkEvictionGracePeriod = e.Period
		if e.Created && equality.Semantic.DeepEqual(*k.Spec.WorkConfiguration, defaults) {
			k.Spec.WorkConfiguration = nil
		}
	}
	*r = Record{}
}
