package hub_test

// siteObjects are what a managed cluster has on its hub: an object for each rule by which objects move, one
// for each reference in the rules, and what stays.
const siteObjects = `
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: NAME
  labels: {site: north}
  annotations: {agent.open-cluster-management.io/klusterlet-config: proxy-NAME, mine: "yes"}
spec:
  hubAcceptsClient: true
  leaseDurationSeconds: 10
  managedClusterClientConfigs: [{url: "https://NAME.example.com"}]
status:
  conditions:
  - {type: ManagedClusterJoined, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: ManagedClusterConditionAvailable, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}
  version: {}
  clusterClaims: [{name: id.k8s.io, value: id-of-NAME}]
---
apiVersion: config.open-cluster-management.io/v1alpha1
kind: KlusterletConfig
metadata: {name: proxy-NAME}
spec: {hubKubeAPIServerConfig: {proxyURL: "http://proxy.example.com"}}
---
apiVersion: agent.open-cluster-management.io/v1
kind: KlusterletAddonConfig
metadata: {name: NAME, namespace: NAME}
spec: {clusterName: NAME, searchCollector: {enabled: true}}
---
apiVersion: observability.open-cluster-management.io/v1beta1
kind: ObservabilityAddon
metadata: {name: observability-addon, namespace: NAME, finalizers: [observability.open-cluster-management.io/addon-cleanup]}
spec: {enableMetrics: true}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-admin-password, namespace: NAME}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-admin-kubeconfig, namespace: NAME}
stringData: {kubeconfig: "token: administrator-of-the-site"}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-metadata-json, namespace: NAME}
stringData: {metadata.json: "infrastructure-of-the-site"}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-seed-reconfiguration, namespace: NAME}
stringData: {manifest.json: "signers-of-the-site"}
---
apiVersion: v1
kind: Secret
metadata: {name: preserved, namespace: NAME, labels: {siteconfig.open-cluster-management.io/preserve: ""}}
---
apiVersion: v1
kind: Secret
metadata: {name: network, namespace: NAME, annotations: {siteconfig.open-cluster-management.io/sync-wave: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, namespace: NAME, labels: {siteconfig.open-cluster-management.io/preserve: ""}}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-moved, namespace: NAME}
---
apiVersion: v1
kind: Secret
metadata: {name: bmc, namespace: NAME, finalizers: [baremetalhost.metal3.io/secret]}
stringData: {username: root, password: calvin}
---
apiVersion: v1
kind: Secret
metadata: {name: user-data, namespace: NAME}
---
apiVersion: v1
kind: Secret
metadata: {name: network-data, namespace: NAME}
---
apiVersion: v1
kind: Secret
metadata: {name: meta-data, namespace: NAME}
---
apiVersion: v1
kind: Secret
metadata: {name: preprovisioning, namespace: NAME}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: extra, namespace: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: manifests, namespace: NAME}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: node-1, namespace: NAME, finalizers: [baremetalhost.metal3.io]}
spec:
  online: true
  bmc: {address: "redfish://1", credentialsName: bmc}
  userData: {name: user-data}
  networkData: {name: network-data}
  metaData: {name: meta-data}
  preprovisioningNetworkDataName: preprovisioning
status: {provisioning: {state: provisioned, ID: one}, poweredOn: true, errorCount: 0}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: node-2, namespace: NAME, finalizers: [baremetalhost.metal3.io]}
spec: {online: true, bmc: {address: "redfish://2", credentialsName: bmc}}
status: {provisioning: {state: provisioned, ID: two}, poweredOn: true, errorCount: 0}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: node-3, namespace: NAME, finalizers: [baremetalhost.metal3.io], annotations: {baremetalhost.metal3.io/paused: "by the user"}}
spec: {online: true, bmc: {address: "redfish://3", credentialsName: bmc}}
status: {provisioning: {state: externally provisioned, ID: three}, poweredOn: true, errorCount: 0}
---
apiVersion: metal3.io/v1alpha1
kind: HostFirmwareSettings
metadata: {name: node-1, namespace: NAME}
spec: {settings: {Boot: fast}}
status: {settings: {Boot: fast}, generation: 1700000000123, schema: {name: schema-1, namespace: NAME}}
---
apiVersion: metal3.io/v1alpha1
kind: FirmwareSchema
metadata: {name: schema-1, namespace: NAME}
spec: {hardwareVendor: v, schema: {Boot: {attribute_type: Enumeration, allowable_values: [fast, slow]}}}
---
apiVersion: metal3.io/v1alpha1
kind: HostFirmwareComponents
metadata: {name: node-1, namespace: NAME}
spec: {updates: [{component: bios, url: "http://bios"}]}
status: {components: [{component: bios, initialVersion: "1", currentVersion: "2"}]}
---
apiVersion: metal3.io/v1alpha1
kind: DataImage
metadata: {name: node-1, namespace: NAME, finalizers: [dataimage.metal3.io]}
spec: {url: "http://image"}
status: {attachedImage: {url: "http://image"}}
---
apiVersion: extensions.hive.openshift.io/v1alpha1
kind: ImageClusterInstall
metadata: {name: NAME, namespace: NAME, finalizers: [imageclusterinstall.agent.open-cluster-management.io/deprovision]}
spec: {hostname: node-1, clusterDeploymentRef: {name: NAME}, extraManifestsRefs: [{name: extra}]}
status: {bootTime: "2026-01-01T00:00:00Z"}
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: NAME, namespace: NAME, finalizers: [hive.openshift.io/deprovision]}
spec:
  clusterName: NAME
  installed: true
  pullSecretRef: {name: pull}
  provisioning: {manifestsConfigMapRef: {name: manifests}}
  clusterMetadata: {infraID: i, adminKubeconfigSecretRef: {name: NAME-admin-kubeconfig}, adminPasswordSecretRef: {name: NAME-admin-password}}
status: {powerState: Running, installedTimestamp: "2026-01-01T00:00:00Z"}`
