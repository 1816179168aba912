package export

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// nameBytes is the length of an RFC 1123 label, which every kind accepts as its name.
const nameBytes = 63

// digestStep is how many characters of a digest a name gets at first.
const digestStep = 8

// uniqueNames returns a metadata.name for each external name, based on the author's proposal. A name that is shared or
// cut gets a digest of the external name as a suffix. The digest is lengthened until the name is unique: another name
// may contain the same digest by chance, or because a user of the external system chose it.
func uniqueNames(proposed map[string]string) map[string]string {
	names, digest := map[string]string{}, map[string]bool{}
	for external, text := range proposed {
		names[external] = label(text)
		digest[external] = len(names[external]) > nameBytes
	}
	for length := digestStep; ; {
		for external, text := range proposed {
			if digest[external] {
				names[external] = withDigest(label(text), external, length)
			}
		}
		same := shared(names)
		if len(same) == 0 {
			return names
		}
		for _, external := range same {
			if digest[external] {
				length = min(length+digestStep, nameBytes)
				break
			}
		}
		for _, external := range same {
			digest[external] = true
		}
	}
}

// shared returns the external names whose objects have the same name as another object.
func shared(names map[string]string) []string {
	uses := map[string]int{}
	for _, name := range names {
		uses[name]++
	}
	var list []string
	for external, name := range names {
		if uses[name] > 1 {
			list = append(list, external)
		}
	}
	return list
}

// label returns a valid name, which may be too long.
func label(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	if name := strings.TrimRight(b.String(), "-"); name != "" {
		return name
	}
	return "unnamed"
}

func withDigest(text, external string, length int) string {
	sum := sha256.Sum256([]byte(external))
	digest := hex.EncodeToString(sum[:])[:length]
	room := max(nameBytes-len(digest)-1, 0)
	text = strings.TrimRight(text[:min(len(text), room)], "-")
	if text == "" {
		return digest
	}
	return text + "-" + digest
}
