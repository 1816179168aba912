package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/walk"
)

// maxRepointAttempts bounds the tries on a holder that others write, too. The next round
// tries again.
const maxRepointAttempts = 3

// repoint leads every reference to a source to its successor, holder by holder, so
// that a holder of several is written once.
func (r *pass) repoint(ctx context.Context) error {
	moves := map[string]*upgrade{}
	for _, t := range r.tasks {
		if t.repointing() {
			moves[t.from()] = t
		}
	}
	byHolder := map[*Referrer][]Reference{}
	var holders []*Referrer
	for name := range moves {
		for _, ref := range r.Of(name) {
			if !ref.writable() {
				continue
			}
			if byHolder[ref.Referrer] == nil {
				holders = append(holders, ref.Referrer)
			}
			byHolder[ref.Referrer] = append(byHolder[ref.Referrer], ref)
		}
	}
	return each(ctx, r.Upgrader, holders, func(ctx context.Context, h *Referrer) error {
		m := repointer{client: r.client, sources: r.sources, upgrades: moves}
		if err := m.move(ctx, h, byHolder[h]); err != nil {
			if _, transient := walk.Transient(err); transient {
				return err
			}
			m.recordError(byHolder[h], err)
		}
		return nil
	})
}

// repointer writes the references of one holder.
type repointer struct {
	client   *client
	sources  []referrerSource
	upgrades map[string]*upgrade // by the name that a reference is to lose
}

// recordError notes why; the task says so if the reference is still there in the end.
func (m repointer) recordError(references []Reference, err error) {
	for _, ref := range references {
		m.upgrades[ref.Revision].recordError(err)
	}
}

// move writes what is a user's before what is a controller's: a status follows its
// spec, and never runs ahead of it.
func (m repointer) move(ctx context.Context, h *Referrer, references []Reference) error {
	for try := 0; ; try++ {
		err := m.write(ctx, h, references)
		if !conflict(err) || try == maxRepointAttempts {
			return err
		}
		if h, references, err = m.again(ctx, h); err != nil || h == nil {
			return err
		}
	}
}

// again reads a holder that was written by somebody else.
func (m repointer) again(ctx context.Context, h *Referrer) (*Referrer, []Reference, error) {
	now, all, err := m.client.reread(ctx, m.sources, h)
	if now != nil {
		now.owned = h.owned
	}
	var left []Reference
	for _, ref := range all {
		if m.upgrades[ref.Revision] != nil && !ref.Fixed {
			ref.Referrer = now
			left = append(left, ref)
		}
	}
	return now, left, err
}

func (m repointer) write(ctx context.Context, h *Referrer, references []Reference) error {
	version := h.ResourceVersion
	for _, subresource := range []string{"", "status"} {
		content, place := map[string]any{}, ""
		for _, ref := range references {
			t := m.upgrades[ref.Revision]
			if ref.Subresource != subresource || !t.mayTouch(h) {
				continue
			}
			put(content, ref.Path, t.to())
			place = cmp.Or(place, ref.Path)
		}
		if len(content) == 0 {
			continue
		}
		put(content, "/metadata/resourceVersion", version)
		body, err := json.Marshal(content)
		if err != nil {
			return err
		}
		if version, err = m.client.patch(ctx, h, subresource, body); err != nil {
			return fmt.Errorf("write %s of %s %s: %w", place, h.Kind, h.Name, err)
		}
	}
	return nil
}

// put sets a value in nested objects, by a JSON pointer. No place is in a list.
func put(content map[string]any, pointer string, value any) {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for _, key := range keys[:len(keys)-1] {
		next, ok := content[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			content[key] = next
		}
		content = next
	}
	content[keys[len(keys)-1]] = value
}
