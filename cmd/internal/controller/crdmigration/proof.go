package crdmigration

import (
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// proofOf reads a proof of the status; nil if there is none.
func proofOf(p *v1alpha1.ValueProof) *evidence.Proof {
	if p == nil {
		return nil
	}
	proof := &evidence.Proof{By: evidence.ProvenBy(p.ProvenBy), Generation: p.Generation, Objects: p.Objects, Unproven: p.Unproven}
	for _, loss := range p.Accepted {
		proof.Accepted = append(proof.Accepted, values.Loss{Path: loss.Path, Objects: loss.Objects})
	}
	return proof
}

// storedProof returns the form of a proof in the status.
func storedProof(p *evidence.Proof) *v1alpha1.ValueProof {
	if p == nil {
		return nil
	}
	proof := &v1alpha1.ValueProof{ProvenBy: string(p.By), Generation: p.Generation, Objects: p.Objects, Unproven: p.Unproven}
	for _, loss := range p.Accepted {
		proof.Accepted = append(proof.Accepted, v1alpha1.ValueLoss{Path: loss.Path, Objects: loss.Objects})
	}
	return proof
}
