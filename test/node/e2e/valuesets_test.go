package e2e_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	// mirror has the image under another name.
	mirror = "registry.example.com/mirror/godwit"
	// agentRelease is the release of the agent of a hub, and its namespace: that of the manager has the manager's key.
	agentRelease = "godwit-agent"
	// kafkaSecret has the files by which a feature reaches Kafka.
	kafkaSecret = "kafka"
)

// managerValues turn on all features of the manager, and have other values than the defaults. Pods of the revision upgrader have the
// values of operator, and those of other features their own. Pods prefer to share a node, which a constraint forbids. The chart of a release
// has the digest of its image, which a mirror may not have.
const managerValues = `
global: {owner: platform}
enabled: true
image: {repository: ` + mirror + `, tag: ` + version + `, digest: "", pullPolicy: Never}
imagePullSecrets: [{name: registry}]
rbac: {aggregate: false}
operator:
  features: {revisionUpgrader: true, clusterMigration: true}
  replicas: 2
  logVerbosity: 2
  terminationGracePeriodSeconds: 5
  env:
    - {name: GOMAXPROCS, value: "2"}
    - {name: GOMEMLIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
  priorityClassName: important
  resources: {requests: {cpu: 20m, memory: 32Mi}, limits: {cpu: "1", memory: 300Mi}}
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: reserved, operator: Exists, effect: NoSchedule}]
  affinity: &together
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/name: godwit}}}
  topologySpreadConstraints: &apart [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]
  serviceAccountAnnotations: {example.com/role: reader}
  podAnnotations: {example.com/owner: platform}
  podLabels: {team: platform}
  overrides:
    storageVersionMigrator: &own
      priorityClassName: more-important
      resources: {requests: {cpu: 30m, memory: 48Mi}, limits: {memory: 400Mi}}
      nodeSelector: {kubernetes.io/arch: ARCH}
      tolerations: [{key: own, operator: Exists, effect: NoSchedule}]
      affinity: *together
      topologySpreadConstraints: *apart
      serviceAccountAnnotations: {example.com/role: own}
    clusterMigration: *own
storageVersionMigrator:
  scopes:
    - group: GROUP
      labelSelector:
        matchLabels: {godwit.dev/auto-migrate-storage-version: "true"}
        matchExpressions: [{key: example.com/tier, operator: NotIn, values: [bronze]}]
  defaults: {phases: [StorageVersionMigration], write: Patch, settle: 1s, trim: true, maxInFlight: 4, maxWritesPerSecond: 100}
  rbac: {groups: [other.example.com], writes: [Update]}
revisionUpgrader: {scanEvery: 30m}
clusterMigration:
  kafka:
    brokers: [kafka.example.com:9093]
    ca: /etc/kafka/ca.crt
    cert: /etc/kafka/tls.crt
    key: /etc/kafka/tls.key
    sasl: SCRAM-SHA-512
    user: manager
    passwordFile: /etc/kafka/password
  kafkaSecret: ` + kafkaSecret + `
  namespaces: [moves]
limits: {maxInFlight: 8, maxWritesPerSecond: 200, maxBytesPerFiveMinutes: 1Gi}
metrics:
  tls: {certManager: {enabled: true, issuerRef: {name: platform, kind: ClusterIssuer, group: cert-manager.io}}}
  service: {annotations: {example.com/owner: platform}}
  serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s, serviceAccount: {name: prometheus, namespace: monitoring}}
  podMonitor: {enabled: true, labels: {release: prometheus}, interval: 40s, tokenSecret: {name: scraper, key: bearer}}
  prometheusRule:
    enabled: true
    labels: {release: prometheus}
    alertLabels: {team: platform}
    disabled: [GodwitThrottled]
    runbookURL: https://runbooks.example.com/
  dashboard: {enabled: true, labels: {grafana: "yes"}, annotations: {grafana_folder: platform}}
networkPolicy:
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  egress: [{ports: [{port: 443}], to: [{ipBlock: {cidr: 10.0.0.1/32}}]}]
`

// ownPods are the values of pods that are of one feature alone.
const ownPods = `{
      priorityClassName: more-important,
      resources: {requests: {cpu: 30m, memory: 48Mi}, limits: {memory: 400Mi}},
      nodeSelector: {kubernetes.io/arch: ARCH},
      tolerations: [{key: own, operator: Exists, effect: NoSchedule}],
      affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}}]}},
      topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}],
      serviceAccountAnnotations: {example.com/role: own}
      }`

// offValues turn off what managerValues have on, and give the objects another name.
const offValues = `
fullnameOverride: another
crds: {keep: false}
operator:
  features: {revisionUpgrader: true, clusterMigration: true}
  overrides:
    revisionUpgrader: ` + ownPods + `
storageVersionMigrator: {rbac: {allGroups: true}}
clusterMigration: {kafka: {brokers: [kafka.example.com:9092], plaintext: true}, creatorPolicy: false}
metrics: {enabled: false}
networkPolicy: {enabled: false}
podDisruptionBudget: {enabled: false}
`

// agentValues turn on the agent of a hub alone, whose image has a digest and no tag.
const agentValues = `
image: {digest: DIGEST}
crds: {enabled: false}
operator: {features: {storageVersionMigrator: false, hubAgent: true}}
hubAgent:
  hub: hub1
  managerKey: MANAGERKEY
  bootstrapNamespace: bootstrap
  rules: [{group: example.com, kind: SiteNote, names: ["{cluster}-note"]}]
  kafka:
    brokers: ["BROKER"]
    ca: /etc/kafka/ca.crt
    cert: /etc/kafka/tls.crt
    key: /etc/kafka/tls.key
    sasl: SCRAM-SHA-256
    user: agent
    passwordFile: /etc/kafka/password
  kafkaSecret: ` + kafkaSecret + `
metrics:
  tls: {secretName: agent-metrics-tls, ca: {configMap: trust, key: bundle.crt}}
  serviceMonitor: {enabled: true, serviceAccount: {name: prometheus}}
`

// plainAgentValues are those of an agent that reaches Kafka without TLS and without a password.
const plainAgentValues = `
crds: {enabled: false}
operator:
  features: {storageVersionMigrator: false, hubAgent: true}
  overrides:
    hubAgent: ` + ownPods + `
hubAgent: {hub: hub1, managerKey: MANAGERKEY, kafka: {brokers: ["BROKER"], plaintext: true}}
`

// parse returns values in which words are replaced: each is before its replacement.
func parse(t *testing.T, text string, words ...string) map[string]any {
	t.Helper()
	var values map[string]any
	text = strings.NewReplacer(append(words, "ARCH", runtime.GOARCH)...).Replace(text)
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(fmt.Errorf("%w in %s", err, text))
	}
	return values
}
