package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/internal/format"
)

const (
	// labelStored marks the Secrets of migrations in the namespace of an agent.
	labelStored = "godwit.dev/hub-migration"
	// secretPrefix precedes the UID of a migration in the name of its Secret.
	secretPrefix = "godwit-migration-"
	// dataTask and dataKey are the keys of such a Secret.
	dataTask, dataKey = "task", "key"
)

// store keeps tasks in Secrets. It has one writer: the agent is elected.
type store struct {
	client    client.Client
	namespace string
	// only is the UID of the one migration that is read; empty means all.
	only string
}

// stored is a task with the key of its migration. The key is nil when the migration needs to open nothing more.
type stored struct {
	task task
	key  *message.OpeningKey
	// version is the resourceVersion of the Secret, empty before it is created. A write fails if the Secret has changed
	// since.
	version string
}

// list returns the tasks of migrations by UID. For a task that a newer release wrote, it returns an error by UID:
// the agent accepts no command of this migration. A Secret that can't be read is an error: without it, the agent would
// execute a replayed command.
func (s store) list(ctx context.Context) (all map[string]stored, newer map[string]error, err error) {
	secrets := &corev1.SecretList{}
	if err := s.client.List(ctx, secrets, client.InNamespace(s.namespace), client.HasLabels{labelStored}); err != nil {
		return nil, nil, fmt.Errorf("list the commands of migrations: %w", err)
	}
	all, newer = make(map[string]stored, len(secrets.Items)), map[string]error{}
	for _, secret := range secrets.Items {
		if s.only != "" && secret.Labels[labelStored] != s.only {
			continue
		}
		if err := format.CheckData(fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name), secret.Data); err != nil {
			newer[secret.Labels[labelStored]] = cluster.RefuseNewer(err)
			continue
		}
		one, err := read(secret)
		if err != nil {
			return nil, nil, fmt.Errorf("read Secret %s/%s, which has a command of a migration: %w; delete the Secret if the migration has ended", secret.Namespace, secret.Name, err)
		}
		all[secret.Labels[labelStored]] = one
	}
	return all, newer, nil
}

func read(secret corev1.Secret) (stored, error) {
	t, err := decodeTask(secret.Data[dataTask])
	if err != nil {
		return stored{}, err
	}
	one := stored{task: t, version: secret.ResourceVersion}
	if data := secret.Data[dataKey]; len(data) > 0 {
		key, err := message.ReadOpeningKey(data)
		if err != nil {
			return stored{}, err
		}
		one.key = &key
	}
	return one, nil
}

// save writes a task, and returns the version of its Secret.
func (s store) save(ctx context.Context, uid string, one stored) (version string, err error) {
	data, err := one.task.encode()
	if err != nil {
		return "", err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: secretPrefix + uid, ResourceVersion: one.version, Labels: map[string]string{labelStored: uid},
		},
		Data: map[string][]byte{dataTask: data, format.Key: fmt.Append(nil, format.Current)},
	}
	if one.key != nil {
		if secret.Data[dataKey], err = one.key.Bytes(); err != nil {
			return "", fmt.Errorf("store the key of migration %s: %w", uid, err)
		}
	}
	if one.version == "" {
		err = s.client.Create(ctx, secret)
	} else {
		err = s.client.Update(ctx, secret)
	}
	if err != nil {
		return "", fmt.Errorf("store the command of migration %s in Secret %s/%s: %w", uid, s.namespace, secret.Name, err)
	}
	return secret.ResourceVersion, nil
}

// DeleteStored deletes what the agent in a namespace has stored of a migration. No agent may run, and no broker may have a
// command of the migration: without the record the agent would execute it.
func DeleteStored(ctx context.Context, c client.Client, namespace, uid string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretPrefix + uid}}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s/%s with the last command of the migration: %w", namespace, secret.Name, err)
	}
	return nil
}
