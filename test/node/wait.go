package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/test/process"
)

// AwaitNamespace makes a namespace with labels, unless a parallel test has, and waits for its service account, without which it accepts no pod.
func (c *Cluster) AwaitNamespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := c.Clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return process.Poll(ctx, "the service account of "+name, func(ctx context.Context) error {
		_, err := c.Clients.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// AwaitPod waits until a pod is as wanted, and returns it.
func (c *Cluster) AwaitPod(ctx context.Context, namespace, name, what string, wanted func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var there *corev1.Pod
	err := process.Poll(ctx, fmt.Sprintf("pod %s/%s %s", namespace, name, what), func(ctx context.Context) error {
		var err error
		if there, err = c.Clients.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !wanted(there) {
			return fmt.Errorf("its status is %+v", there.Status)
		}
		return nil
	})
	return there, err
}

// Running is a condition for AwaitPod.
func Running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

// FailedError means that the container of a pod has ended with another exit code than 0.
type FailedError struct {
	Pod, Node, Reason string
	ExitCode          int32
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("pod %s on %s has failed: %s, exit code %d", e.Pod, e.Node, e.Reason, e.ExitCode)
}

// AwaitEnd waits for the end of a pod, and returns what its only container has written. Unless the pod has succeeded, the error is a
// FailedError.
func (c *Cluster) AwaitEnd(ctx context.Context, namespace, name string) (string, error) {
	there, err := c.AwaitPod(ctx, namespace, name, "to end", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if err != nil {
		return "", err
	}
	said, err := c.PodLog(ctx, namespace, name)
	if err == nil && there.Status.Phase == corev1.PodFailed {
		failed := &FailedError{Pod: namespace + "/" + name, Node: there.Spec.NodeName, Reason: there.Status.Reason}
		for _, status := range there.Status.ContainerStatuses {
			if ended := status.State.Terminated; ended != nil {
				failed.Reason, failed.ExitCode = ended.Reason, ended.ExitCode
			}
		}
		err = failed
	}
	return said, err
}

// PodLog returns what a pod's only container has written.
func (c *Cluster) PodLog(ctx context.Context, namespace, name string) (string, error) {
	out, err := c.Clients.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(out), err
}
