#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/uninstall.sh [--anyway]: takes Aliquot out of the cluster that KUBECONFIG names, with all
# that its programs wrote there, and prints what is left to do on each node. It ends with 1 while a
# node holds slices: --anyway takes the programs away under them. KUBECTL and HELM name the
# programs, RELEASE and RELEASE_NAMESPACE the release of Helm (aliquot, in kube-system).
set -euo pipefail

kubectl=${KUBECTL:-kubectl} helm=${HELM:-helm} release=${RELEASE:-aliquot} namespace=${RELEASE_NAMESPACE:-kube-system}
ours=app.kubernetes.io/name=aliquot

held=$($kubectl get nodes -l aliquot.dev/holds-slices=true -o name | tr '\n' ' ')
if [ -n "$held" ] && [ "${1:-}" != --anyway ]; then
        echo "uninstall: pods hold slices on $held: end them first (kubectl inspect cgpu -d names them), or say --anyway: they run on, uncounted" >&2
        exit 1
fi
nodes=$($kubectl get nodes -l aliquot.dev/holds-slices -o name)
where=$($kubectl get daemonset gpushare-device-plugin-ds -A -l $ours -o 'jsonpath={.items[0].metadata.namespace}' 2>/dev/null || true)
where=${where:-kube-system}

# First, so that no request waits for a webhook that goes.
$kubectl delete --ignore-not-found mutatingwebhookconfiguration,validatingwebhookconfiguration aliquot
$kubectl delete --ignore-not-found validatingadmissionpolicybinding,validatingadmissionpolicy -l $ours ||
        echo "uninstall: no policies in this version of Kubernetes" >&2
if [ -n "$($kubectl get secret -n "$namespace" -l "owner=helm,name=$release" -o name)" ]; then
        "$helm" uninstall "$release" --namespace "$namespace"
fi
for n in "$where" kube-system; do # what a kustomization has applied
        $kubectl delete -n "$n" -l $ours daemonset,deployment,service,configmap,serviceaccount,role,rolebinding,poddisruptionbudget,networkpolicy
done
$kubectl delete -l $ours clusterrole,clusterrolebinding
$kubectl wait -n "$where" -l $ours --for=delete --timeout=120s pod # they write to what comes next

$kubectl delete -n "$where" --ignore-not-found secret/aliquot-webhook-tls lease/aliquot-scheduler
$kubectl delete -n "$namespace" --ignore-not-found "pod/$release-test"
if [ -z "$($kubectl get resourcepolicies.scheduling.alibabacloud.com -A -o name 2>/dev/null)" ]; then
        $kubectl delete --ignore-not-found crd resourcepolicies.scheduling.alibabacloud.com
else
        echo "uninstall: ResourcePolicies are there, and their CRD stays: kubectl delete crd resourcepolicies.scheduling.alibabacloud.com" >&2
fi

conditions=
for type in ChangePending Misconfigured DriverUnsupported MemoryLimitsUnavailable CardsCordoned CardsOutOfService OtherPlugin; do
        conditions+="${conditions:+,}{\"type\":\"GPUShare$type\",\"\$patch\":\"delete\"}"
done
for node in $nodes; do
        $kubectl label "$node" aliquot.dev/holds-slices- aliyun.accelerator/nvidia_name- aliyun.accelerator/nvidia_mem- \
                aliyun.accelerator/nvidia_count-
        $kubectl annotate "$node" aliquot.dev/cards- aliquot.dev/gpu-mem-unit- aliquot.dev/held-slices- aliquot.dev/mode-in-force- \
                aliquot.dev/gpu-mem-unit-in-force- aliquot.dev/change-pending- aliquot.dev/grown-slices-
        $kubectl patch "$node" --subresource=status -p \
                "{\"status\":{\"conditions\":[$conditions],\"capacity\":{\"aliyun.com/gpu-count\":null},\"allocatable\":{\"aliyun.com/gpu-count\":null}}}"
done
[ -z "$nodes" ] || cat <<END
The cluster has nothing of aliquot. On each of these nodes, once no pod with a slice runs there:

  umount -R /run/aliquot/slices; rm -rf /run/aliquot /var/lib/aliquot /var/run/cdi/aliquot.dev-gpu.json

$nodes
END
