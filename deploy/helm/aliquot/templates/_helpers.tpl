{{- /* REGISTRY/REPOSITORY:TAG@DIGEST of a dict with name, image and tag, the tag where it has none. */ -}}
{{- define "aliquot.image" -}}
{{- if not (kindIs "map" .image) }}
{{- fail (printf "images.%s: has parts: set images.%s.registry, .repository, .tag and .digest, and not one text" .name .name) }}
{{- end }}
{{- with .image.registry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag | default .tag }}{{ with .image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "aliquot.ownImage" -}}
{{- include "aliquot.image" (dict "name" "aliquot" "image" .Values.images.aliquot "tag" .Chart.AppVersion) }}
{{- end }}

{{- /* The version of the cluster by which images of its parts are named: v1.31.4 of v1.31.4+k3s1,
v1.31.4-eks-1234abc or v1.31.4-gke.1184000; a candidate keeps its suffix. */ -}}
{{- define "aliquot.clusterVersion" -}}
{{- regexFind "^v?[0-9]+\\.[0-9]+\\.[0-9]+(-(alpha|beta|rc)\\.[0-9]+)?" .Capabilities.KubeVersion.Version | trimPrefix "v" }}
{{- end }}

{{- define "aliquot.kubeSchedulerImage" -}}
{{- $image := .Values.images.kubeScheduler }}
{{- $version := include "aliquot.clusterVersion" . }}
{{- if kindIs "map" $image }}
{{- if and $image.digest (not $image.tag) }}
{{- fail "images.kubeScheduler.digest: images.kubeScheduler.tag is missing; its version decides on a feature gate, and a digest tells none" }}
{{- end }}
{{- if not (or $image.tag $version) }}
{{- fail (printf "images.kubeScheduler.tag: the cluster's version %s names no image of kube-scheduler; set the tag" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}
{{- include "aliquot.image" (dict "name" "kubeScheduler" "image" $image "tag" (printf "v%s" $version)) }}
{{- end }}

{{- /* The version of that kube-scheduler: of its tag, where that has one, else of the cluster. */ -}}
{{- define "aliquot.kubeSchedulerVersion" -}}
{{- regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" (toString .Values.images.kubeScheduler.tag) | default .Capabilities.KubeVersion.Version }}
{{- end }}

{{- define "aliquot.deviceAccess" -}}
{{- $known := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version | ternary "cdi" "runtime" }}
{{- eq .Values.deviceAccess "auto" | ternary $known .Values.deviceAccess }}
{{- end }}

{{- define "aliquot.policies" -}}
{{- $policies := .Values.admissionPolicies | toString }}
{{- eq $policies "auto" | ternary (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version | toString) $policies }}
{{- end }}

{{- define "aliquot.conditions" -}}
{{- $conditions := .Values.webhook.matchConditions | toString }}
{{- eq $conditions "auto" | ternary (semverCompare ">=1.28.0-0" .Capabilities.KubeVersion.Version | toString) $conditions }}
{{- end }}

{{- /* A file of objects/ with kube-system replaced by the namespace: where objects live, whose
accounts the policies and the webhook know, and which pods the webhook leaves alone. Of a dict with root and path. */ -}}
{{- define "aliquot.objects" -}}
{{- $namespace := .root.Values.namespace }}
{{- $text := .root.Files.Get .path }}
{{- if ne $namespace "kube-system" }}
{{- /* What kube-system has of ours stays there, for our accounts: fences, and the API server's configuration. */}}
{{- $text = $text | replace "namespace: kube-system}" (printf "namespace: %s}" $namespace) }}
{{- if ne (base .path) "kube-system-rbac.yaml" }}
{{- $text = $text | replace "namespace: kube-system" (printf "namespace: %s" $namespace) }}
{{- $text = $text | replace "serviceaccount:kube-system:" (printf "serviceaccount:%s:" $namespace) }}
{{- $text = $text | replace "values: [kube-system]" (printf "values: [kube-system, %s]" $namespace) }}
{{- end }}
{{- end }}
{{- $text }}
{{- end }}

{{- /* Options of the programs that the chart sets, and the value that sets each. */ -}}
{{- define "aliquot.nodeOptions" -}}
--node-name: ""
--kubelet-dir: ""
--state-dir: ""
--cdi-dir: ""
--cgroup-root: ""
--host-root: ""
--metrics-listen: ""
--gpu-mem-unit: gpuMemoryUnit
--device-access: deviceAccess
--policy: policy
--max-inst: maxInst
--prio-ratio: prioRatio
--max-pods-per-card: maxPodsPerCard
--allow-mixed: allowMixed
--place-while-changing: placeWhileChanging
--grow-beyond-limits: growBeyondLimits
--keep-nvidia-plugin-off: keepNvidiaPluginOff
--ignore-cgpu-disable: ignoreCgpuDisable
--say-refusals: sayRefusals
--known-drivers-only: knownDriversOnly
--memory-isolation: memoryIsolation
--hung-kernel: hungKernel
--on-hung-kernel: onHungKernel
--on-compute-excess: onComputeExcess
--on-excess: onExcess
--simulate: simulate
--simulate-dir: simulatedDriver
{{- end }}

{{- define "aliquot.schedulerOptions" -}}
--listen: ""
--read-listen: scheduler.readsOnLoopback
--kube-scheduler-lease: ""
--lease-file: ""
--webhook-listen: ""
--webhook-service: namespace
--evict-for-cards: evictForCards
--grow-beyond-limits: growBeyondLimits
--device-access: deviceAccess
--filter-best: filterBest
--gangs: gangs
--spare-idle-cards: spareIdleCards
--node-order: nodeOrder
--page: page.enabled
--page-hosts: page.hosts
--page-cluster: page.cluster
--not-safe-to-evict: notSafeToEvict
--max-pods-per-card: maxPodsPerCard
--allow-mixed: allowMixed
--system-accounts: systemAccounts
{{- end }}

{{- define "aliquot.kubeSchedulerOptions" -}}
--config: ""
{{- end }}

{{- /* More arguments, of a dict with key, args and options: the YAML of one of the three above. */ -}}
{{- define "aliquot.extraArgs" -}}
{{- $options := fromYaml .options }}
{{- range .args }}
{{- $option := regexFind "^--[a-z0-9-]+" . }}
{{- if hasKey $options $option }}
{{- fail (printf "%s.extraArgs: %s is given already: %s" $.key $option (get $options $option | empty | ternary "the chart depends on it" (printf "set the value %s" (get $options $option)))) }}
{{- end }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Labels of a pod besides the chart's own, of a dict with key and labels. */ -}}
{{- define "aliquot.moreLabels" -}}
{{- range $label, $_ := .labels }}
{{- if or (has $label (list "name" "app.kubernetes.io/name" "app.kubernetes.io/component")) }}
{{- fail (printf "%s.labels: %s is the chart's own, and selectors ask for it" $.key $label) }}
{{- end }}
{{- end }}
{{- toYaml .labels }}
{{- end }}

{{- /* Values that contradict each other or the cluster, each with what to do. */ -}}
{{- define "aliquot.judge" -}}
{{- $cluster := .Capabilities.KubeVersion.Version }}
{{- if and (eq (include "aliquot.conditions" .) "true") (semverCompare "<1.28.0-0" $cluster) }}
{{- fail "webhook.matchConditions: needs Kubernetes 1.28; an older API server drops the conditions, and would refuse every pod while the webhook is down" }}
{{- end }}
{{- $policies := include "aliquot.policies" . }}
{{- if and (eq $policies "true") (semverCompare "<1.30.0-0" $cluster) }}
{{- fail (printf "admissionPolicies: need Kubernetes 1.30, and this is %s; auto leaves them out" $cluster) }}
{{- end }}
{{- if and .Values.growBeyondLimits (ne $policies "true") }}
{{- fail "growBeyondLimits: needs the policies of admissionPolicies, from Kubernetes 1.30 on" }}
{{- end }}
{{- if and (eq .Values.deviceAccess "cdi") (semverCompare "<1.28.0-0" $cluster) }}
{{- fail (printf "deviceAccess: the kubelet of Kubernetes %s passes no CDI devices on, which 1.29 does; auto takes runtime" $cluster) }}
{{- end }}
{{- range $name, $cards := dict "simulate" .Values.simulate "simulatedDriver" .Values.simulatedDriver }}
{{- if not (regexMatch "^([^:,]+:[1-9][0-9]*(MiB|GiB)(,[^:,]+:[1-9][0-9]*(MiB|GiB))*(/.+)?)?$" $cards) }}
{{- fail (printf "%s: %s is no list of cards, as 2xTesla-V100-SXM2-16GB:16160MiB, or of several models with a comma (in --set: \\,)" $name $cards) }}
{{- end }}
{{- end }}
{{- if and .Values.simulate .Values.simulatedDriver }}
{{- fail "simulate and simulatedDriver: the cards are those of one of them" }}
{{- end }}
{{- if and .Values.scheduler.readsOnLoopback (ne .Values.monitoring "none") }}
{{- fail "monitoring: with scheduler.readsOnLoopback Prometheus does not reach the scheduler's metrics; set one of them back" }}
{{- end }}
{{- if has (toString (int64 .Values.page.port)) (list "12345" "12347" "9443" "10259") }}
{{- fail (printf "page.port: %d is another port of the scheduler's pods" (int64 .Values.page.port)) }}
{{- end }}
{{- if and .Values.page.cluster (not .Values.page.enabled) }}
{{- fail "page.cluster: there is no page to show it; set page.enabled=true" }}
{{- end }}
{{- if and .Values.page.hosts (not .Values.page.enabled) }}
{{- fail "page.hosts: there is no page to ask for; set page.enabled=true" }}
{{- end }}
{{- if eq .Values.namespace "default" }}
{{- fail "namespace: pods beside aliquot get no cards, so that it cannot live in the namespace default" }}
{{- end }}
{{- $tag := regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" (toString (dig "tag" "" (kindIs "map" .Values.images.kubeScheduler | ternary .Values.images.kubeScheduler dict))) }}
{{- if $tag }}
{{- $v := semver $tag }}{{- $c := semver $cluster }}
{{- if or (ne $v.Major $c.Major) (gt $v.Minor $c.Minor) (lt (add1 $v.Minor) (int64 $c.Minor)) }}
{{- fail (printf "images.kubeScheduler.tag: %s with a cluster of %s; kube-scheduler has the API server's minor version or one less" .Values.images.kubeScheduler.tag $cluster) }}
{{- end }}
{{- end }}
{{- end }}
