#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/uninstall.sh [--anyway]: takes Aliquot out of the cluster that KUBECONFIG names, with all
# that its programs wrote there, and prints what is left to do on each node. It ends with 1 while a
# node holds slices: --anyway takes the programs away under them. Where kubectl fails it ends, too,
# and the next run goes on. KUBECTL and HELM name the programs, with options. RELEASE and
# RELEASE_NAMESPACE name the release of Helm, where its DaemonSet is gone (aliquot, in kube-system).
set -euo pipefail

if [ $# -gt 1 ] || { [ $# = 1 ] && [ "$1" != --anyway ]; }; then
        echo "usage: uninstall.sh [--anyway]" >&2
        exit 2
fi
kubectl=${KUBECTL:-kubectl} helm=${HELM:-helm}
ours=app.kubernetes.io/name=aliquot
crd=resourcepolicies.scheduling.alibabacloud.com
plugin=nvidia.com/gpu.deploy.device-plugin

say() {
        echo "uninstall: $*" >&2
}

# All questions come first, as assignments: what kubectl does not answer ends the script.
held=$($kubectl get nodes -l aliquot.dev/holds-slices=true -o name | tr '\n' ' ')
if [ -n "$held" ] && [ "${1:-}" != --anyway ]; then
        say "pods hold slices on $held: end them first (kubectl inspect cgpu -d names them), or say --anyway: they run on, uncounted"
        exit 1
fi
# A node that does not share any more has conditions, and no label of ours.
nodes=$($kubectl get nodes -o 'jsonpath={range .items[*]}node/{.metadata.name} {.metadata.labels} {.status.conditions[*].type}{"\n"}{end}' |
        sed -nE 's/ .*(aliquot\.dev\/holds-slices|GPUShare|GPUFence).*//p')
kept=$($kubectl get nodes -l $plugin=false -o name)
found=$($kubectl get daemonset -A -l $ours -o 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.annotations.meta\.helm\.sh/release-name} {.metadata.annotations.meta\.helm\.sh/release-namespace}{"\n"}{end}')
read -r where release namespace <<<"$found" || true
if [ -z "$where" ]; then
        found=$($kubectl get lease -A --field-selector metadata.name=aliquot-scheduler -o 'jsonpath={range .items[*]}{.metadata.namespace}{"\n"}{end}')
        read -r where <<<"$found" || true
fi
where=${where:-kube-system} release=${release:-${RELEASE:-aliquot}} namespace=${namespace:-${RELEASE_NAMESPACE:-kube-system}}
secret=$($kubectl get secret -n "$namespace" -l "owner=helm,name=$release" -o name)
if [ -n "$secret" ] && ! command -v "${helm%% *}" >/dev/null; then
        say "Helm has the release $release in $namespace, and there is no ${helm%% *} here: HELM names it"
        exit 1
fi
admission=$($kubectl get --raw /apis/admissionregistration.k8s.io/v1)
kinds=daemonset,deployment,service,configmap,serviceaccount,role,rolebinding,poddisruptionbudget,networkpolicy
! $kubectl get --raw /apis/monitoring.coreos.com/v1 >/dev/null 2>&1 || kinds+=,podmonitor,prometheusrule
defined=$($kubectl get crd -l $ours -o name)
policies=
[ -z "$defined" ] || policies=$($kubectl get $crd -A -o name)

# First, so that no request waits for a webhook that goes.
$kubectl delete --ignore-not-found mutatingwebhookconfiguration,validatingwebhookconfiguration aliquot
if [[ $admission == *validatingadmissionpolicies* ]]; then # from 1.30 on
        $kubectl delete --ignore-not-found validatingadmissionpolicybinding,validatingadmissionpolicy -l $ours
fi
[ -z "$secret" ] || $helm uninstall "$release" --namespace "$namespace"
for n in "$where" kube-system; do # what a kustomization has applied
        $kubectl delete -n "$n" -l $ours $kinds
done
$kubectl delete -l $ours clusterrole,clusterrolebinding
$kubectl wait -n "$where" -l $ours --for=delete --timeout=120s pod # they write to what comes next

conditions=
for type in GPUShareChangePending GPUShareMisconfigured GPUShareDriverUnsupported GPUShareMemoryLimitsUnavailable \
        GPUShareCardsCordoned GPUShareCardsOutOfService GPUShareOtherPlugin GPUFenceMisconfigured; do
        conditions+="${conditions:+,}{\"type\":\"$type\",\"\$patch\":\"delete\"}"
done

# The labels last: by them the next run finds the node again.
clean_node() {
        $kubectl annotate "$1" aliquot.dev/cards- aliquot.dev/gpu-mem-unit- aliquot.dev/held-slices- aliquot.dev/mode-in-force- \
                aliquot.dev/gpu-mem-unit-in-force- aliquot.dev/change-pending- aliquot.dev/grown-slices- &&
                $kubectl patch "$1" --subresource=status -p \
                        "{\"status\":{\"conditions\":[$conditions],\"capacity\":{\"aliyun.com/gpu-count\":null},\"allocatable\":{\"aliyun.com/gpu-count\":null}}}" &&
                $kubectl label "$1" aliyun.accelerator/nvidia_name- aliyun.accelerator/nvidia_mem- aliyun.accelerator/nvidia_count- \
                        aliquot.dev/holds-slices-
}
left=
for node in $nodes; do
        clean_node "$node" || left+=" $node"
done
if [ -n "$left" ]; then
        say "still with keys of aliquot:$left; run this again"
        exit 1
fi

$kubectl delete -n "$where" --ignore-not-found secret/aliquot-webhook-tls lease/aliquot-scheduler
$kubectl delete -n "$namespace" --ignore-not-found "pod/$release-test"
if [ -n "$policies" ]; then
        say "ResourcePolicies are there, and their CRD stays: kubectl delete crd $crd"
elif [ -n "$defined" ]; then
        $kubectl delete --ignore-not-found crd $crd
fi
[ -z "$kept" ] || say "NVIDIA's device plugin stays off, where keepNvidiaPluginOff said so: kubectl label $(tr '\n' ' ' <<<"$kept")$plugin-"
echo "The cluster has nothing of aliquot."
[ -z "$nodes" ] || cat <<END
On each of these nodes, once no pod with a slice runs there:

  umount -R /run/aliquot/slices; rm -rf /run/aliquot /var/lib/aliquot /var/run/cdi/aliquot.dev-gpu.json

$nodes
END
