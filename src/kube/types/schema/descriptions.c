#include "kube/types/schema/descriptions.h"

struct description {
    const char *field, *text;
};

static const struct description pod_spec[] = {
    {"volumes", "Volumes that the containers of the pod can mount."},
    {"initContainers", "Containers that run one after the other before the others start; a "
                       "restartable one keeps running beside them."},
    {"containers",
     "The containers of the pod; at least one. They share its network and its volumes."},
    {"ephemeralContainers", "Containers added to a running pod to debug it; they are changed "
                            "through the subresource ephemeralcontainers alone."},
    {"restartPolicy",
     "When containers that have ended are started again: Always (default), OnFailure or Never."},
    {"terminationGracePeriodSeconds",
     "Seconds between the request to stop and the kill of the containers; default 30."},
    {"activeDeadlineSeconds",
     "Seconds after its start for which the pod may run on a node before it is marked as failed."},
    {"dnsPolicy", "Where containers resolve names: ClusterFirst (default), "
                  "ClusterFirstWithHostNet, Default or None."},
    {"nodeSelector", "Labels that a node must have for the pod to be scheduled there."},
    {"serviceAccountName",
     "The service account in whose name the pod calls the API; default \"default\"."},
    {"serviceAccount", "A former name of serviceAccountName, kept equal to it."},
    {"automountServiceAccountToken",
     "Whether a token of the service account is mounted into the containers."},
    {"nodeName", "The node on which the pod runs; set by the scheduler when it binds the pod."},
    {"hostNetwork", "Use the network of the node instead of one of the pod's own."},
    {"hostPID", "See the processes of the node."},
    {"hostIPC", "Share inter-process communication with the node."},
    {"shareProcessNamespace", "Let all containers of the pod see each other's processes."},
    {"securityContext", "Users, groups and other security settings for all containers, unless a "
                        "container has its own."},
    {"imagePullSecrets", "Secrets of this namespace with credentials for registries of images."},
    {"hostname", "The host name of the pod; default is the name of the pod."},
    {"subdomain",
     "The domain below which the host name is found, usually the name of a headless service."},
    {"affinity", "Rules on which nodes, or near which other pods, the pod may or should run."},
    {"schedulerName", "The scheduler that places the pod; default default-scheduler."},
    {"tolerations", "Taints of nodes that do not keep the pod away."},
    {"hostAliases", "Lines to add to /etc/hosts of the containers."},
    {"priorityClassName", "The priority class that gives the pod its priority."},
    {"priority", "The priority as a number, filled in from the priority class."},
    {"dnsConfig", "Name servers, search domains and options in addition to those of dnsPolicy."},
    {"readinessGates",
     "Conditions of the pod that must be true, besides ready containers, for it to be ready."},
    {"runtimeClassName", "The runtime class that runs the containers."},
    {"enableServiceLinks", "Whether containers get environment variables with the services of the "
                           "namespace; default true."},
    {"preemptionPolicy",
     "Whether the pod may evict pods of lower priority: PreemptLowerPriority (default) or Never."},
    {"overhead", "What the runtime needs for the pod besides its containers, filled in from the "
                 "runtime class."},
    {"topologySpreadConstraints",
     "How pods of a group are spread over zones, nodes or other domains."},
    {"setHostnameAsFQDN", "Use the fully qualified name as the host name of the containers."},
    {"os", "The operating system of the containers; other fields are checked accordingly."},
    {"hostUsers",
     "Use the users of the node; false: the pod has a user namespace of its own. Default true."},
    {"schedulingGates", "The pod is not scheduled before all of these are removed."},
    {"resourceClaims", "Claims of devices that must be allocated before the pod may start."},
    {"resources", "Requests and limits for all containers of the pod together."},
    {"hostnameOverride",
     "The host name that the containers see, instead of hostname and subdomain."},
    {"schedulingGroup", "The group of pods with which the pod is scheduled."},
};

static const struct description deployment_spec[] = {
    {"replicas", "How many pods should run; default 1."},
    {"selector", "The labels by which the deployment finds its pods; must match those of the "
                 "template and cannot be changed."},
    {"template", "The pod of which copies are created."},
    {"strategy", "How old pods are replaced by new ones: RollingUpdate (default) or Recreate."},
    {"minReadySeconds",
     "Seconds for which a new pod must be ready before it counts as available; default 0."},
    {"revisionHistoryLimit", "How many old replica sets are kept for a rollback; default 10."},
    {"paused", "Do not roll out changes of the template for now."},
    {"progressDeadlineSeconds",
     "Seconds without progress after which a rollout is reported as failed; default 600."},
};

static const struct description service_spec[] = {
    {"ports", "The ports of the service, and where they lead in the pods."},
    {"selector", "The labels of the pods that receive the traffic; without it, endpoints are "
                 "written by others."},
    {"clusterIP",
     "The address of the service in the cluster; None: no address, clients see those of the pods."},
    {"clusterIPs", "The addresses of the service in the cluster, one for each IP family; the first "
                   "one equals clusterIP."},
    {"type",
     "How the service is reached: ClusterIP (default), NodePort, LoadBalancer or ExternalName."},
    {"externalIPs", "Addresses outside the cluster for which nodes accept traffic; routing them "
                    "there is not done by Kubernetes."},
    {"sessionAffinity",
     "ClientIP sends all connections of a client to the same pod; default None."},
    {"loadBalancerIP",
     "The address wanted for the load balancer; not supported by all providers, and deprecated."},
    {"loadBalancerSourceRanges", "Address ranges of clients that the load balancer admits."},
    {"externalName", "The DNS name to which a service of type ExternalName leads."},
    {"externalTrafficPolicy", "Whether traffic from outside goes to pods on any node (Cluster) or "
                              "only on the node that received it (Local)."},
    {"healthCheckNodePort", "The port at which a node says whether it has pods of the service, if "
                            "externalTrafficPolicy is Local."},
    {"publishNotReadyAddresses", "Publish the addresses of pods that are not ready, too."},
    {"sessionAffinityConfig", "For how long clients keep their pod."},
    {"ipFamilies", "IPv4 and IPv6, in the order in which addresses are assigned."},
    {"ipFamilyPolicy",
     "Whether one IP family or two are used: SingleStack, PreferDualStack or RequireDualStack."},
    {"allocateLoadBalancerNodePorts",
     "Whether a service of type LoadBalancer gets node ports; default true."},
    {"loadBalancerClass",
     "The implementation of load balancers that is responsible for the service."},
    {"internalTrafficPolicy", "Whether traffic within the cluster goes to pods on any node "
                              "(Cluster) or only on the same node (Local)."},
    {"trafficDistribution",
     "Which pods are preferred, for example those in the zone of the client."},
};

static const struct description config_map[] = {
    {"immutable", "Data can no longer be changed, only the object deleted."},
    {"data", "Texts by their keys."},
    {"binaryData", "Binary values in base64 by their keys, which must not occur in data."},
};

static const struct description secret[] = {
    {"immutable", "Data can no longer be changed, only the object deleted."},
    {"data", "Values in base64 by their keys."},
    {"stringData",
     "Values as plain texts; moved into data when the object is written, and never shown."},
    {"type", "What the secret is for, for example Opaque (default) or kubernetes.io/tls; some "
             "types need certain keys."},
};

static const struct description ingress_spec[] = {
    {"ingressClassName", "The ingress class, and with it the controller, that is responsible."},
    {"defaultBackend", "Where requests go that match no rule."},
    {"tls", "Secrets with certificates, and the host names for which they are used."},
    {"rules", "Which hosts and paths lead to which services."},
};

static const struct description job_spec[] = {
    {"parallelism", "How many pods may run at the same time; default 1."},
    {"completions", "How many pods must succeed; default 1."},
    {"activeDeadlineSeconds",
     "Seconds after the start for which the job may run before its pods are stopped and it fails."},
    {"podFailurePolicy", "Which failures of pods end the job, count or are ignored."},
    {"successPolicy", "When the job counts as successful before all of its indexes are."},
    {"backoffLimit", "How many failures are tolerated before the job fails; default 6."},
    {"backoffLimitPerIndex",
     "How many failures of each index are tolerated, in a job of completion mode Indexed."},
    {"maxFailedIndexes", "How many indexes may fail before the whole job does."},
    {"selector", "The labels by which the job finds its pods; usually filled in."},
    {"manualSelector", "The selector is given by the author of the job and not filled in."},
    {"template", "The pod that is run."},
    {"ttlSecondsAfterFinished",
     "Seconds after which a finished job is deleted; without it, it stays."},
    {"completionMode",
     "NonIndexed (default): all pods are alike; Indexed: each pod has an index of its own."},
    {"suspend", "Stop the pods and start no others until this is false."},
    {"podReplacementPolicy", "Whether a pod is replaced when it is being terminated "
                             "(TerminatingOrFailed) or when it has failed (Failed)."},
    {"managedBy",
     "The controller that is responsible, if it is not that of Kubernetes; cannot be changed."},
};

static const struct description cron_job_spec[] = {
    {"schedule", "When jobs are started, in the format of cron."},
    {"timeZone", "The time zone of the schedule; default is that of kube-controller-manager."},
    {"startingDeadlineSeconds", "Seconds by which a start may be late before it is skipped."},
    {"concurrencyPolicy",
     "What happens if the job before is still running: Allow (default), Forbid or Replace."},
    {"suspend", "Start no more jobs until this is false."},
    {"jobTemplate", "The job that is created each time."},
    {"successfulJobsHistoryLimit", "How many successful jobs are kept; default 3."},
    {"failedJobsHistoryLimit", "How many failed jobs are kept; default 1."},
};

static const struct description stateful_set_spec[] = {
    {"replicas", "How many pods should run; default 1."},
    {"selector", "The labels by which the set finds its pods; must match those of the template and "
                 "cannot be changed."},
    {"template", "The pod of which copies are created, each with a name and an index of its own."},
    {"volumeClaimTemplates", "Claims that are created for each pod and kept when it moves."},
    {"serviceName", "The headless service that gives the pods their DNS names."},
    {"podManagementPolicy", "Whether pods are started and stopped one after the other "
                            "(OrderedReady, default) or at once (Parallel)."},
    {"updateStrategy",
     "How pods are replaced when the template changes: RollingUpdate (default) or OnDelete."},
    {"revisionHistoryLimit", "How many old revisions are kept for a rollback; default 10."},
    {"minReadySeconds",
     "Seconds for which a new pod must be ready before it counts as available; default 0."},
    {"persistentVolumeClaimRetentionPolicy", "What becomes of the claims when the set is deleted "
                                             "or made smaller: Retain (default) or Delete."},
    {"ordinals", "The number of the first pod; default 0."},
};

static const struct description daemon_set_spec[] = {
    {"selector", "The labels by which the set finds its pods; must match those of the template and "
                 "cannot be changed."},
    {"template", "The pod that runs on each node on which it may run."},
    {"updateStrategy",
     "How pods are replaced when the template changes: RollingUpdate (default) or OnDelete."},
    {"minReadySeconds",
     "Seconds for which a new pod must be ready before it counts as available; default 0."},
    {"revisionHistoryLimit", "How many old revisions are kept for a rollback; default 10."},
};

static const struct description persistent_volume_claim_spec[] = {
    {"accessModes", "How the volume may be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, "
                    "ReadWriteOncePod."},
    {"selector", "The labels of volumes that may be bound."},
    {"resources", "The size that is requested."},
    {"volumeName", "The volume that is bound to the claim."},
    {"storageClassName",
     "The storage class that provides the volume; empty: none, without it: the default class."},
    {"volumeMode", "Filesystem (default): the volume is mounted; Block: it is a raw device."},
    {"dataSource", "A snapshot or claim whose content the volume gets."},
    {"dataSourceRef",
     "An object of any kind whose content the volume gets; also in other namespaces."},
    {"volumeAttributesClassName",
     "The class of attributes that the volume has, which may be changed later."},
};

static const struct description namespace_spec[] = {
    {"finalizers",
     "What must be done before the namespace is removed, usually the deletion of its objects."},
};

/* Members that most kinds have. */
static const struct description of_all[] = {
    {"apiVersion", "The group and version of the schema of this object, for example apps/v1."},
    {"kind", "The kind of this object, for example Deployment."},
    {"metadata", "Name, namespace, labels and the other fields that all objects have."},
    {"spec", "The desired state."},
    {"status", "The observed state, which controllers write."},
};

#define ROWS(rows) rows, COUNT_OF(rows)

static const struct {
    const char *package, *type;
    const struct description *rows;
    size_t count;
} described[] = {
    {"io.k8s.api.core.v1", "PodSpec", ROWS(pod_spec)},
    {"io.k8s.api.apps.v1", "DeploymentSpec", ROWS(deployment_spec)},
    {"io.k8s.api.core.v1", "ServiceSpec", ROWS(service_spec)},
    {"io.k8s.api.core.v1", "ConfigMap", ROWS(config_map)},
    {"io.k8s.api.core.v1", "Secret", ROWS(secret)},
    {"io.k8s.api.networking.v1", "IngressSpec", ROWS(ingress_spec)},
    {"io.k8s.api.batch.v1", "JobSpec", ROWS(job_spec)},
    {"io.k8s.api.batch.v1", "CronJobSpec", ROWS(cron_job_spec)},
    {"io.k8s.api.apps.v1", "StatefulSetSpec", ROWS(stateful_set_spec)},
    {"io.k8s.api.apps.v1", "DaemonSetSpec", ROWS(daemon_set_spec)},
    {"io.k8s.api.core.v1", "PersistentVolumeClaimSpec", ROWS(persistent_volume_claim_spec)},
    {"io.k8s.api.core.v1", "NamespaceSpec", ROWS(namespace_spec)},
};

static const char *find(const struct description *rows, size_t count, struct slice field)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(field, rows[i].field))
            return rows[i].text;
    return NULL;
}

const char *kube_field_description(const struct kube_type *type, const struct kube_field *field)
{
    struct slice name = kube_field_name(field);
    const struct kube_type *value = kube_field_type(field);
    for (size_t i = 0; i < COUNT_OF(described); i++) {
        if (strcmp(described[i].type, kube_type_name(type)) == 0 &&
            strcmp(described[i].package, kube_type_package(type)) == 0) {
            const char *text = find(described[i].rows, described[i].count, name);
            if (text)
                return text;
        }
    }
    /* Some types have a text named kind or status that means something else. */
    bool is_type_meta = strcmp(kube_type_name(type), "TypeMeta") == 0;
    return is_type_meta || (value && field->shape == KUBE_SHAPE_ONE) ? find(ROWS(of_all), name)
                                                                     : NULL;
}
