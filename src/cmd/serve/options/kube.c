#include "cmd/serve/options/options_private.h"

static const struct option kube[] = {
    FLAG_LIST("listen-kube-urls", serve_options, listen_kube_urls, SERVE_KUBE_URL_DEFAULT,
              "URLs on which the Kubernetes API is served. Empty: not served, which is also the "
              "default under the name etcd. The default URL is skipped if its address is in use, "
              "or unless all client URLs are plain http on loopback without client certificates. "
              "In front of a kube-apiserver these are the only URLs for clients."),
    FLAG_TEXT("kube-token-file", serve_options, kube_token_file, "",
              "A file of bearer tokens with lines of the form token,user,uid,\"group1,group2\". "
              "With it, the Kubernetes API serves only clients that present one of these tokens "
              "or a client certificate."),
    FLAG_TEXT("kube-client-ca-file", serve_options, kube_client_ca_file, "",
              "The certificate authorities of users of the Kubernetes API, PEM. Clients of https "
              "URLs may then present a certificate, which must be valid, or none. It cannot be "
              "used with --trusted-ca-file, which requires one."),
    FLAG_ENUM("kube-authorization-mode", serve_options, kube_authorization_mode, "AlwaysAllow",
              "Who may do what in the Kubernetes API. AlwaysAllow: every client with access may "
              "do everything. RBAC: a client may do what roles and bindings allow its user and "
              "groups, as in Kubernetes; members of system:masters may do everything, and a "
              "client without credentials is system:anonymous. Node: the user system:node:NAME in "
              "the group system:nodes may do what the kubelet of this node must, such as read the "
              "secrets of its own pods. With both, what one of them allows.",
              "AlwaysAllow|RBAC|Node|Node,RBAC|RBAC,Node"),
    FLAG_LIST("kube-enable-admission-plugins", serve_options, kube_enable_admission_plugins, "",
              "Admission plugins of the Kubernetes API that are enabled besides those that are "
              "by default: all that Vigil has but DenyServiceExternalIPs, NodeRestriction and "
              "OwnerReferencesPermissionEnforcement, and two of them only with another "
              "--kube-authorization-mode, because they rely on kube-controller-manager. "
              "ServiceAccount refuses pods until their account is created, and "
              "StorageObjectInUseProtection adds a finalizer to volumes and claims. "
              "NodeRestriction goes with the mode Node: a kubelet may write only what belongs to "
              "its node."),
    FLAG_LIST("kube-disable-admission-plugins", serve_options, kube_disable_admission_plugins, "",
              "Admission plugins of the Kubernetes API that are disabled, by the names that "
              "Kubernetes has for them. Without MutatingAdmissionWebhook and "
              "ValidatingAdmissionWebhook, no admission webhooks are called."),
    FLAG_TEXT(
        "kube-admission-control-config-file", serve_options, kube_admission_control_config_file, "",
        "A file with the configuration of admission plugins, an AdmissionConfiguration in "
        "YAML or JSON: defaults and exemptions of PodSecurity, and how the server signs in at "
        "webhooks."),
    FLAG_TRUE("kube-allow-privileged", serve_options, kube_allow_privileged,
              "Accept pods, and templates of pods, with privileged containers. Under the name "
              "kube-apiserver the flag is --allow-privileged, and the default is false, as "
              "there."),
    FLAG_LIST("kube-service-account-issuer", serve_options, kube_service_account_issuer, "",
              "The issuer of the tokens of service accounts, a URL. Of several, the first "
              "issues and all are accepted."),
    FLAG_LIST("kube-service-account-key-file", serve_options, kube_service_account_key_file, "",
              "Files (PEM) of public keys, certificates or private keys that verify the tokens "
              "of service accounts: RSA (RS256) or ECDSA (ES256, ES384, ES512). By default the "
              "key of --kube-service-account-signing-key-file."),
    FLAG_TEXT("kube-service-account-signing-key-file", serve_options,
              kube_service_account_signing_key_file, "",
              "A file (PEM) of the private key that signs the tokens of service accounts. By "
              "default, and with none of these flags, a key in the data directory, which the "
              "server makes (service-account.key); in front of a cluster none, and no tokens are "
              "issued."),
    FLAG_LIST("kube-api-audiences", serve_options, kube_api_audiences, "",
              "The audiences of this server: a token of a service account must be meant for one "
              "of them. By default the issuers."),
    FLAG_TRUE("kube-bootstrap", serve_options, kube_bootstrap,
              "Create the objects that a cluster has from the start, such as the service "
              "kubernetes, priority classes, and the roles of RBAC, with the first request for a "
              "resource. The namespaces are always created."),
    FLAG_TEXT("kube-advertise-address", serve_options, kube_advertise_address, "",
              "The address of the endpoints of the service kubernetes. Empty: that of the first "
              "URL of --listen-kube-urls. A loopback address has no endpoints, as in Kubernetes."),
    FLAG_TEXT("kube-service-cluster-ip-range", serve_options, kube_service_cluster_ip_range,
              "10.0.0.0/24",
              "The range from which services get their addresses. Of two ranges, separated by a "
              "comma, the first is used."),
    FLAG_TEXT("kube-service-node-port-range", serve_options, kube_service_node_port_range,
              "30000-32767", "The first and the last node port of services."),
    FLAG_ENUM("kube-managed-fields", serve_options, kube_managed_fields, "apply",
              "The objects that have managedFields: all, as in Kubernetes, or those that a client "
              "has applied to, from the first apply on, which makes objects smaller and writes "
              "cheaper. Under the name kube-apiserver it is all.",
              "apply|all"),
    FLAG_ENUM("kube-undecodable", serve_options, kube_undecodable, "error",
              "How a watch handles a stored value that is not a JSON object: end with an error, "
              "as Kubernetes does, or skip and count it.",
              "error|skip"),
    FLAG_TRUE("kube-garbage-collector", serve_options, kube_garbage_collector,
              "Delete objects of the Kubernetes API whose owners are gone, and carry out "
              "deletions in the foreground and with orphans, as kube-controller-manager does. "
              "While a kube-controller-manager holds its lease, this is left to it."),
    FLAG_TRUE("kube-namespace-controller", serve_options, kube_namespace_controller,
              "Delete the objects in a namespace that is being deleted, and then the namespace, "
              "as kube-controller-manager does. While a kube-controller-manager holds its lease, "
              "this is left to it. false: a deleted namespace stays until its objects are "
              "deleted and its finalizer is removed by others, as with a kube-apiserver alone."),
    FLAG_TRUE("kube-namespace-objects", serve_options, kube_namespace_objects,
              "Create the service account default and the config map kube-root-ca.crt in each "
              "namespace, and again when they are deleted or the config map is changed, as "
              "kube-controller-manager does. While a kube-controller-manager holds its lease, "
              "this is left to it; in front of a cluster, always. The config map has the "
              "certificate of --cert-file, and is empty without it. With --kube-bootstrap=false "
              "nothing is created."),
    FLAG_TRUE("kube-quota-controller", serve_options, kube_quota_controller,
              "Fill in the status of resource quotas, and count again when objects are deleted "
              "or a quota is changed, as kube-controller-manager does. While a "
              "kube-controller-manager holds its lease, this is left to it. false: others write "
              "the status, and until they do, writes that a quota concerns are refused."),
    FLAG_TRUE("kube-policy-status", serve_options, kube_policy_status,
              "Check the types of the expressions of validating admission policies, and write "
              "warnings about them into the status of the policies, as kube-controller-manager "
              "does. While a kube-controller-manager holds its lease, this is left to it."),
    FLAG_DURATION(
        "kube-history", serve_options, kube_history_ns, "5m0s",
        "How long history is kept for watches after the first write through the Kubernetes "
        "API: older revisions of all keys are compacted, as a kube-apiserver does. 0: no "
        "compaction. --auto-compaction-retention takes precedence. In front of a cluster "
        "all Vigils and kube-apiservers agree, by the key compact_rev_key, on one of them "
        "that compacts it. In front of a kube-apiserver: how long the mirror keeps changes, at "
        "least.",
        BETWEEN(0, 24 * HOUR)),
    FLAG_SIZE("kube-history-bytes", serve_options, kube_history_bytes, "268435456",
              "When this many bytes were added to the store, history is shortened to three "
              "tenths of --kube-history; 0: no limit. In front of a kube-apiserver: the size of "
              "the mirror's history; beyond it the oldest changes are dropped earlier.",
              BETWEEN(0, 1024L * 1024 * MIB)),
};

const struct option_group serve_kube_options = GROUP("Kubernetes API", kube);
