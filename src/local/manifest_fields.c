/* SPDX-License-Identifier: Apache-2.0 */
#include "local/manifest_fields.h"

#include "base/cleanup.h"

/* Of Kubernetes 1.36, api/openapi-spec/swagger.json; written by scripts/manifest-fields.py. */
const ManifestType manifest_types[] = {
        {"AWSElasticBlockStoreVolumeSource", "fsType partition readOnly volumeID"},
        {"Affinity", "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity"},
        {"AppArmorProfile", "localhostProfile type"},
        {"AzureDiskVolumeSource", "cachingMode diskName diskURI fsType kind readOnly"},
        {"AzureFileVolumeSource", "readOnly secretName shareName"},
        {"CSIVolumeSource",
         "driver fsType nodePublishSecretRef:LocalObjectReference readOnly volumeAttributes"},
        {"Capabilities", "add drop"},
        {"CephFSVolumeSource", "monitors path readOnly secretFile secretRef:LocalObjectReference user"},
        {"CinderVolumeSource", "fsType readOnly secretRef:LocalObjectReference volumeID"},
        {"ClientIPConfig", "timeoutSeconds"},
        {"ClusterTrustBundleProjection", "labelSelector:LabelSelector name optional path signerName"},
        {"ConfigMap", "apiVersion binaryData data immutable kind metadata:ObjectMeta"},
        {"ConfigMapEnvSource", "name optional"},
        {"ConfigMapKeySelector", "key name optional"},
        {"ConfigMapNodeConfigSource", "kubeletConfigKey name namespace resourceVersion uid"},
        {"ConfigMapProjection", "items:KeyToPath name optional"},
        {"ConfigMapVolumeSource", "defaultMode items:KeyToPath name optional"},
        {"Container",
         "args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle:Lifecycle "
         "livenessProbe:Probe name ports:ContainerPort readinessProbe:Probe "
         "resizePolicy:ContainerResizePolicy resources:ResourceRequirements restartPolicy "
         "restartPolicyRules:ContainerRestartRule securityContext:SecurityContext startupProbe:Probe "
         "stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
         "volumeDevices:VolumeDevice volumeMounts:VolumeMount workingDir"},
        {"ContainerPort", "containerPort hostIP hostPort name protocol"},
        {"ContainerResizePolicy", "resourceName restartPolicy"},
        {"ContainerRestartRule", "action exitCodes:ContainerRestartRuleOnExitCodes"},
        {"ContainerRestartRuleOnExitCodes", "operator values"},
        {"DaemonSet", "apiVersion kind metadata:ObjectMeta spec:DaemonSetSpec status"},
        {"DaemonSetSpec",
         "minReadySeconds revisionHistoryLimit selector:LabelSelector template:PodTemplateSpec "
         "updateStrategy:DaemonSetUpdateStrategy"},
        {"DaemonSetUpdateStrategy", "rollingUpdate:RollingUpdateDaemonSet type"},
        {"Deployment", "apiVersion kind metadata:ObjectMeta spec:DeploymentSpec status"},
        {"DeploymentSpec", "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit "
                           "selector:LabelSelector strategy:DeploymentStrategy template:PodTemplateSpec"},
        {"DeploymentStrategy", "rollingUpdate:RollingUpdateDeployment type"},
        {"DownwardAPIProjection", "items:DownwardAPIVolumeFile"},
        {"DownwardAPIVolumeFile",
         "fieldRef:ObjectFieldSelector mode path resourceFieldRef:ResourceFieldSelector"},
        {"DownwardAPIVolumeSource", "defaultMode items:DownwardAPIVolumeFile"},
        {"EmptyDirVolumeSource", "medium sizeLimit"},
        {"EnvFromSource", "configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource"},
        {"EnvVar", "name value valueFrom:EnvVarSource"},
        {"EnvVarSource", "configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector "
                         "fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector "
                         "secretKeyRef:SecretKeySelector"},
        {"EphemeralContainer",
         "args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle:Lifecycle "
         "livenessProbe:Probe name ports:ContainerPort readinessProbe:Probe "
         "resizePolicy:ContainerResizePolicy resources:ResourceRequirements restartPolicy "
         "restartPolicyRules:ContainerRestartRule securityContext:SecurityContext startupProbe:Probe "
         "stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty "
         "volumeDevices:VolumeDevice volumeMounts:VolumeMount workingDir"},
        {"EphemeralVolumeSource", "volumeClaimTemplate:PersistentVolumeClaimTemplate"},
        {"Event", "action apiVersion count eventTime firstTimestamp involvedObject:ObjectReference kind "
                  "lastTimestamp message metadata:ObjectMeta reason related:ObjectReference "
                  "reportingComponent reportingInstance series:EventSeries source:EventSource type"},
        {"EventSeries", "count lastObservedTime"},
        {"EventSource", "component host"},
        {"ExecAction", "command"},
        {"FCVolumeSource", "fsType lun readOnly targetWWNs wwids"},
        {"FileKeySelector", "key optional path volumeName"},
        {"FlexVolumeSource", "driver fsType options readOnly secretRef:LocalObjectReference"},
        {"FlockerVolumeSource", "datasetName datasetUUID"},
        {"GCEPersistentDiskVolumeSource", "fsType partition pdName readOnly"},
        {"GRPCAction", "port service"},
        {"GitRepoVolumeSource", "directory repository revision"},
        {"GlusterfsVolumeSource", "endpoints path readOnly"},
        {"HTTPGetAction", "host httpHeaders:HTTPHeader path port scheme"},
        {"HTTPHeader", "name value"},
        {"HostAlias", "hostnames ip"},
        {"HostPathVolumeSource", "path type"},
        {"ISCSIVolumeSource",
         "chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals "
         "readOnly secretRef:LocalObjectReference targetPortal"},
        {"ImageVolumeSource", "pullPolicy reference"},
        {"Job", "apiVersion kind metadata:ObjectMeta spec:JobSpec status"},
        {"JobSpec", "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions "
                    "managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy:PodFailurePolicy "
                    "podReplacementPolicy selector:LabelSelector successPolicy:SuccessPolicy suspend "
                    "template:PodTemplateSpec ttlSecondsAfterFinished"},
        {"KeyToPath", "key mode path"},
        {"LabelSelector", "matchExpressions:LabelSelectorRequirement matchLabels"},
        {"LabelSelectorRequirement", "key operator values"},
        {"Lease", "apiVersion kind metadata:ObjectMeta spec:LeaseSpec"},
        {"LeaseSpec",
         "acquireTime holderIdentity leaseDurationSeconds leaseTransitions preferredHolder renewTime "
         "strategy"},
        {"Lifecycle", "postStart:LifecycleHandler preStop:LifecycleHandler stopSignal"},
        {"LifecycleHandler",
         "exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction"},
        {"LocalObjectReference", "name"},
        {"NFSVolumeSource", "path readOnly server"},
        {"Namespace", "apiVersion kind metadata:ObjectMeta spec:NamespaceSpec status"},
        {"NamespaceSpec", "finalizers"},
        {"Node", "apiVersion kind metadata:ObjectMeta spec:NodeSpec status"},
        {"NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm "
                         "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"},
        {"NodeConfigSource", "configMap:ConfigMapNodeConfigSource"},
        {"NodeSelector", "nodeSelectorTerms:NodeSelectorTerm"},
        {"NodeSelectorRequirement", "key operator values"},
        {"NodeSelectorTerm", "matchExpressions:NodeSelectorRequirement matchFields:NodeSelectorRequirement"},
        {"NodeSpec", "configSource:NodeConfigSource externalID podCIDR podCIDRs providerID taints:Taint "
                     "unschedulable"},
        {"ObjectFieldSelector", "apiVersion fieldPath"},
        {"ObjectMeta",
         "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers "
         "generateName generation labels managedFields name namespace ownerReferences:OwnerReference "
         "resourceVersion selfLink uid"},
        {"ObjectReference", "apiVersion fieldPath kind name namespace resourceVersion uid"},
        {"OwnerReference", "apiVersion blockOwnerDeletion controller kind name uid"},
        {"PersistentVolumeClaim",
         "apiVersion kind metadata:ObjectMeta spec:PersistentVolumeClaimSpec status"},
        {"PersistentVolumeClaimSpec",
         "accessModes dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference "
         "resources:VolumeResourceRequirements selector:LabelSelector storageClassName "
         "volumeAttributesClassName volumeMode volumeName"},
        {"PersistentVolumeClaimTemplate", "metadata:ObjectMeta spec:PersistentVolumeClaimSpec"},
        {"PersistentVolumeClaimVolumeSource", "claimName readOnly"},
        {"PhotonPersistentDiskVolumeSource", "fsType pdID"},
        {"Pod", "apiVersion kind metadata:ObjectMeta spec:PodSpec status"},
        {"PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm "
                        "requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm"},
        {"PodAffinityTerm", "labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys "
                            "namespaceSelector:LabelSelector namespaces topologyKey"},
        {"PodAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm "
                            "requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm"},
        {"PodCertificateProjection",
         "certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds signerName "
         "userAnnotations"},
        {"PodDNSConfig", "nameservers options:PodDNSConfigOption searches"},
        {"PodDNSConfigOption", "name value"},
        {"PodDisruptionBudget", "apiVersion kind metadata:ObjectMeta spec:PodDisruptionBudgetSpec status"},
        {"PodDisruptionBudgetSpec",
         "maxUnavailable minAvailable selector:LabelSelector unhealthyPodEvictionPolicy"},
        {"PodFailurePolicy", "rules:PodFailurePolicyRule"},
        {"PodFailurePolicyOnExitCodesRequirement", "containerName operator values"},
        {"PodFailurePolicyOnPodConditionsPattern", "status type"},
        {"PodFailurePolicyRule", "action onExitCodes:PodFailurePolicyOnExitCodesRequirement "
                                 "onPodConditions:PodFailurePolicyOnPodConditionsPattern"},
        {"PodOS", "name"},
        {"PodReadinessGate", "conditionType"},
        {"PodResourceClaim", "name resourceClaimName resourceClaimTemplateName"},
        {"PodSchedulingGate", "name"},
        {"PodSchedulingGroup", "podGroupName"},
        {"PodSecurityContext",
         "appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot "
         "runAsUser seLinuxChangePolicy seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile "
         "supplementalGroups supplementalGroupsPolicy sysctls:Sysctl "
         "windowsOptions:WindowsSecurityContextOptions"},
        {"PodSpec",
         "activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:Container "
         "dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks ephemeralContainers:EphemeralContainer "
         "hostAliases:HostAlias hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride "
         "imagePullSecrets:LocalObjectReference initContainers:Container nodeName nodeSelector "
         "os:PodOS overhead preemptionPolicy priority priorityClassName "
         "readinessGates:PodReadinessGate resourceClaims:PodResourceClaim "
         "resources:ResourceRequirements restartPolicy runtimeClassName schedulerName "
         "schedulingGates:PodSchedulingGate schedulingGroup:PodSchedulingGroup "
         "securityContext:PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN "
         "shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations:Toleration "
         "topologySpreadConstraints:TopologySpreadConstraint volumes:Volume"},
        {"PodTemplateSpec", "metadata:ObjectMeta spec:PodSpec"},
        {"PortworxVolumeSource", "fsType readOnly volumeID"},
        {"PreferredSchedulingTerm", "preference:NodeSelectorTerm weight"},
        {"Probe",
         "exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds "
         "periodSeconds successThreshold tcpSocket:TCPSocketAction terminationGracePeriodSeconds "
         "timeoutSeconds"},
        {"ProjectedVolumeSource", "defaultMode sources:VolumeProjection"},
        {"QuobyteVolumeSource", "group readOnly registry tenant user volume"},
        {"RBDVolumeSource",
         "fsType image keyring monitors pool readOnly secretRef:LocalObjectReference user"},
        {"ReplicaSet", "apiVersion kind metadata:ObjectMeta spec:ReplicaSetSpec status"},
        {"ReplicaSetSpec", "minReadySeconds replicas selector:LabelSelector template:PodTemplateSpec"},
        {"ReplicationController",
         "apiVersion kind metadata:ObjectMeta spec:ReplicationControllerSpec status"},
        {"ReplicationControllerSpec", "minReadySeconds replicas selector template:PodTemplateSpec"},
        {"ResourceClaim", "name request"},
        {"ResourceFieldSelector", "containerName divisor resource"},
        {"ResourceQuota", "apiVersion kind metadata:ObjectMeta spec:ResourceQuotaSpec status"},
        {"ResourceQuotaSpec", "hard scopeSelector:ScopeSelector scopes"},
        {"ResourceRequirements", "claims:ResourceClaim limits requests"},
        {"RollingUpdateDaemonSet", "maxSurge maxUnavailable"},
        {"RollingUpdateDeployment", "maxSurge maxUnavailable"},
        {"RollingUpdateStatefulSetStrategy", "maxUnavailable partition"},
        {"SELinuxOptions", "level role type user"},
        {"ScaleIOVolumeSource",
         "fsType gateway protectionDomain readOnly secretRef:LocalObjectReference sslEnabled "
         "storageMode storagePool system volumeName"},
        {"ScopeSelector", "matchExpressions:ScopedResourceSelectorRequirement"},
        {"ScopedResourceSelectorRequirement", "operator scopeName values"},
        {"SeccompProfile", "localhostProfile type"},
        {"Secret", "apiVersion data immutable kind metadata:ObjectMeta stringData type"},
        {"SecretEnvSource", "name optional"},
        {"SecretKeySelector", "key name optional"},
        {"SecretProjection", "items:KeyToPath name optional"},
        {"SecretVolumeSource", "defaultMode items:KeyToPath optional secretName"},
        {"SecurityContext",
         "allowPrivilegeEscalation appArmorProfile:AppArmorProfile capabilities:Capabilities "
         "privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser "
         "seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile "
         "windowsOptions:WindowsSecurityContextOptions"},
        {"Service", "apiVersion kind metadata:ObjectMeta spec:ServiceSpec status"},
        {"ServiceAccount",
         "apiVersion automountServiceAccountToken imagePullSecrets:LocalObjectReference kind "
         "metadata:ObjectMeta secrets:ObjectReference"},
        {"ServiceAccountTokenProjection", "audience expirationSeconds path"},
        {"ServicePort", "appProtocol name nodePort port protocol targetPort"},
        {"ServiceSpec",
         "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName "
         "externalTrafficPolicy healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy "
         "loadBalancerClass loadBalancerIP loadBalancerSourceRanges ports:ServicePort "
         "publishNotReadyAddresses selector sessionAffinity "
         "sessionAffinityConfig:SessionAffinityConfig trafficDistribution type"},
        {"SessionAffinityConfig", "clientIP:ClientIPConfig"},
        {"SleepAction", "seconds"},
        {"StatefulSet", "apiVersion kind metadata:ObjectMeta spec:StatefulSetSpec status"},
        {"StatefulSetOrdinals", "start"},
        {"StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted whenScaled"},
        {"StatefulSetSpec",
         "minReadySeconds ordinals:StatefulSetOrdinals "
         "persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy "
         "podManagementPolicy replicas revisionHistoryLimit selector:LabelSelector serviceName "
         "template:PodTemplateSpec updateStrategy:StatefulSetUpdateStrategy "
         "volumeClaimTemplates:PersistentVolumeClaim"},
        {"StatefulSetUpdateStrategy", "rollingUpdate:RollingUpdateStatefulSetStrategy type"},
        {"StorageOSVolumeSource",
         "fsType readOnly secretRef:LocalObjectReference volumeName volumeNamespace"},
        {"SuccessPolicy", "rules:SuccessPolicyRule"},
        {"SuccessPolicyRule", "succeededCount succeededIndexes"},
        {"Sysctl", "name value"},
        {"TCPSocketAction", "host port"},
        {"Taint", "effect key timeAdded value"},
        {"Toleration", "effect key operator tolerationSeconds value"},
        {"TopologySpreadConstraint",
         "labelSelector:LabelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy "
         "nodeTaintsPolicy topologyKey whenUnsatisfiable"},
        {"TypedLocalObjectReference", "apiGroup kind name"},
        {"TypedObjectReference", "apiGroup kind name namespace"},
        {"Volume",
         "awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource "
         "azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource "
         "configMap:ConfigMapVolumeSource csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource "
         "emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:FCVolumeSource "
         "flexVolume:FlexVolumeSource flocker:FlockerVolumeSource "
         "gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource "
         "glusterfs:GlusterfsVolumeSource hostPath:HostPathVolumeSource image:ImageVolumeSource "
         "iscsi:ISCSIVolumeSource name nfs:NFSVolumeSource "
         "persistentVolumeClaim:PersistentVolumeClaimVolumeSource "
         "photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource "
         "projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource "
         "scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource "
         "vsphereVolume:VsphereVirtualDiskVolumeSource"},
        {"VolumeDevice", "devicePath name"},
        {"VolumeMount", "mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr"},
        {"VolumeProjection", "clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection "
                             "downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection "
                             "secret:SecretProjection serviceAccountToken:ServiceAccountTokenProjection"},
        {"VolumeResourceRequirements", "limits requests"},
        {"VsphereVirtualDiskVolumeSource", "fsType storagePolicyID storagePolicyName volumePath"},
        {"WeightedPodAffinityTerm", "podAffinityTerm:PodAffinityTerm weight"},
        {"WindowsSecurityContextOptions",
         "gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName"},
};

const size_t manifest_n_types = ELEMENTSOF(manifest_types);
