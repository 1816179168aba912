{{/*
The table of features. A feature is a controller of the manager, or the agent of a hub, and has a Deployment, a
ServiceAccount, roles and a configuration of its own. A line here, a file in files/roles and a key in the values is all that
another controller needs.

  component  names its objects
  variable   switches a controller on and off; the agent has none
  rules      is a template that prints the rules which values decide, besides those in files/roles
*/}}
{{- define "godwit.features" -}}
storageVersionMigrator: {component: storage-version-migrator, variable: ENABLE_STORAGE_VERSION_MIGRATOR, rules: godwit.migratedRules}
revisionUpgrader: {component: revision-upgrader, variable: ENABLE_REVISION_UPGRADER, rules: godwit.noRules}
clusterMigration: {component: cluster-migration, variable: ENABLE_CLUSTER_MIGRATION, rules: godwit.noRules}
hubAgent: {component: hub-agent, rules: godwit.noRules}
{{- end -}}

{{/*
A field of a feature's pods: that of operator.overrides, or else that of operator, as YAML. An empty one prints nothing. A
topologySpreadConstraint without a labelSelector counts the pods of its feature. Several replicas have a default.
*/}}
{{- define "godwit.podField" -}}
{{- $operator := .root.Values.operator -}}
{{- $own := index $operator.overrides .feature.key | default dict -}}
{{- $value := hasKey $own .field | ternary (index $own .field) (index $operator .field) -}}
{{- if and (empty $value) (not (hasKey $own .field)) (gt (int $operator.replicas) 1) -}}
{{- $value = include "godwit.spread" . | fromYaml | dig .field $value -}}
{{- end -}}
{{- if eq .field "topologySpreadConstraints" -}}
{{- $selected := list -}}
{{- range $value -}}
{{- $selected = append $selected (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" (dict "matchLabels" $.feature.selector)) .)) -}}
{{- end -}}
{{- $value = $selected -}}
{{- end -}}
{{- with $value -}}{{- kindIs "string" . | ternary . (toYaml .) -}}{{- end -}}
{{- end -}}

{{/* Where several replicas of a feature prefer to be, unless the values say so. */}}
{{- define "godwit.spread" -}}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- toYaml .feature.selector | nindent 14 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
{{- end -}}

{{/* For features whose roles no value decides. */}}
{{- define "godwit.noRules" -}}{{- end -}}

{{/* The lines of those that are on, with what their objects have in common: key, name, selector, labels. */}}
{{- define "godwit.enabled" -}}
{{- $enabled := list -}}
{{- range $key, $feature := include "godwit.features" . | fromYaml -}}
{{- if index $.Values.operator.features $key -}}
{{- $name := printf "%s-%s" (include "godwit.fullname" $) $feature.component -}}
{{- $selector := dict "app.kubernetes.io/name" $.Chart.Name "app.kubernetes.io/instance" $.Release.Name "app.kubernetes.io/component" $feature.component -}}
{{- $labels := merge (dict) $selector (include "godwit.labels" $ | fromYaml) -}}
{{- $enabled = append $enabled (merge (dict "key" $key "name" $name "selector" $selector "labels" $labels) $feature) -}}
{{- end -}}
{{- end -}}
{{- toYaml $enabled -}}
{{- end -}}

{{/* Names of components are up to 25 characters long, and labels up to 63. */}}
{{- define "godwit.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- .Values.fullnameOverride | default $name | trunc 37 | trimSuffix "-" -}}
{{- end -}}

{{- define "godwit.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: godwit
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "godwit.image" -}}
{{- $tag := .Values.image.tag | default (empty .Values.image.digest | ternary .Chart.AppVersion "") -}}
{{- .Values.image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/*
The environment of a feature's container: its controller is on, and every other one off, since all are the same binary. What
operator.env names is left to it: server-side apply refuses two entries of one name.
*/}}
{{- define "godwit.env" -}}
{{- $theirs := list -}}
{{- range .root.Values.operator.env -}}{{- $theirs = append $theirs .name -}}{{- end -}}
{{- $env := list -}}
{{- range $key, $feature := include "godwit.features" .root | fromYaml -}}
{{- if and $feature.variable $.feature.variable (not (has $feature.variable $theirs)) -}}
{{- $env = append $env (dict "name" $feature.variable "value" (eq $key $.feature.key | toString)) -}}
{{- end -}}
{{- end -}}
{{- concat $env .root.Values.operator.env | toYaml -}}
{{- end -}}

{{/*
A feature's ManagerConfiguration: its own section of the values, and the limits. The rules that values decide are in it as
a comment: with other permissions it is another configuration, and with that another pod, which looks at everything anew.
*/}}
{{- define "godwit.config" -}}
{{- if not .feature.variable -}}
{{ toYaml .root.Values.hubAgent.rules }}
{{- else -}}
{{- with include .feature.rules .root -}}
# Permissions about objects, as storageVersionMigrator.rbac grants them:
{{ trim . | replace "\n" "\n# " | printf "# %s" }}
{{ end -}}
apiVersion: config.godwit.dev/v1alpha1
kind: ManagerConfiguration
{{ dict .feature.key (omit (index .root.Values .feature.key) "rbac" "kafkaSecret" "creatorPolicy") "limits" .root.Values.limits | toYaml }}
{{- end -}}
{{- end -}}

{{/* The arguments of a feature's container: of the manager, or of the agent. */}}
{{- define "godwit.args" -}}
{{- if .feature.variable -}}
- manager
- --config=/etc/godwit/config.yaml
- --leader-elect-namespace={{ .root.Release.Namespace }}
{{- else -}}
{{- $agent := .root.Values.hubAgent -}}
- agent
- --hub={{ $agent.hub }}
- --manager-key={{ $agent.managerKey }}
- --namespace={{ .root.Release.Namespace }}
- --bootstrap-namespace={{ $agent.bootstrapNamespace }}
{{- if $agent.rules }}
- --rules=/etc/godwit/config.yaml
{{- end }}
- --kafka-brokers={{ join "," $agent.kafka.brokers }}
{{- range $flag, $key := dict "ca" "ca" "cert" "cert" "key" "key" "sasl" "sasl" "user" "user" "password-file" "passwordFile" }}
{{- with index $agent.kafka $key }}
- --kafka-{{ $flag }}={{ . }}
{{- end }}
{{- end }}
{{- if $agent.kafka.plaintext }}
- --kafka-plaintext
{{- end }}
{{- end }}
- --metrics-bind-address={{ ternary ":8443" "0" .root.Values.metrics.enabled }}
{{- if and .root.Values.metrics.enabled (include "godwit.metricsSecret" .root) }}
- --metrics-cert-dir=/etc/godwit-metrics
{{- end }}
- --health-probe-bind-address=:8081
{{- range until (int .root.Values.operator.logVerbosity) }}
- --verbose
{{- end }}
{{- end -}}

{{/* The Secret that has the files for Kafka of a feature, if it has one. */}}
{{- define "godwit.kafkaSecret" -}}
{{- with index .root.Values .feature.key -}}{{- .kafkaSecret | default "" -}}{{- end -}}
{{- end -}}

{{/* The Secret that has the certificate of the metrics endpoint: empty where each pod signs its own. */}}
{{- define "godwit.metricsSecret" -}}
{{- $tls := .Values.metrics.tls -}}
{{- $tls.secretName | default ($tls.certManager.enabled | ternary (printf "%s-metrics-tls" (include "godwit.fullname" .)) "") -}}
{{- end -}}

{{/* How Prometheus verifies that certificate. */}}
{{- define "godwit.metricsTLS" -}}
{{- $tls := .Values.metrics.tls -}}
ca:
  {{- if $tls.ca.configMap }}
  configMap: {name: {{ $tls.ca.configMap }}, key: {{ $tls.ca.key }}}
  {{- else }}
  secret: {name: {{ include "godwit.metricsSecret" . }}, key: {{ $tls.ca.key }}}
  {{- end }}
serverName: {{ include "godwit.metricsHost" . }}
{{- end -}}

{{/* The name in that certificate: of the Service of the metrics endpoints. */}}
{{- define "godwit.metricsHost" -}}
{{- include "godwit.fullname" . }}-metrics.{{ .Release.Namespace }}.svc
{{- end -}}
