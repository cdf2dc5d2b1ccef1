#include "cmd/serve/options_private.h"

static const struct option kube[] = {
    {
        .name = "listen-kube-urls",
        .kind = OPTION_LIST,
        .fallback = SERVE_KUBE_URL_DEFAULT,
        .help = "URLs on which the Kubernetes API is served. Empty: not served, which is also the "
                "default under the name etcd. The default URL is skipped if its address is in use, "
                "or unless all client URLs are plain http on loopback without client certificates.",
        FIELD(listen_kube_urls),
    },
    {
        .name = "kube-token-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of bearer tokens with lines of the form token,user,uid,\"group1,group2\". "
                "With it, the Kubernetes API serves only clients that present one of these tokens "
                "or a client certificate.",
        FIELD(kube_token_file),
    },
    {
        .name = "kube-client-ca-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The certificate authorities of users of the Kubernetes API, PEM. Clients of https "
                "URLs may then present a certificate, which must be valid, or none. It cannot be "
                "used with --trusted-ca-file, which requires one.",
        FIELD(kube_client_ca_file),
    },
    {
        .name = "kube-authorization-mode",
        .kind = OPTION_ENUM,
        .fallback = "AlwaysAllow",
        .choices = "AlwaysAllow|RBAC",
        .help = "Who may do what in the Kubernetes API. AlwaysAllow: every client with access may "
                "do everything. RBAC: a client may do what roles and bindings allow its user and "
                "groups, as in Kubernetes; members of system:masters may do everything, and a "
                "client without credentials is system:anonymous.",
        FIELD(kube_authorization_mode),
    },
    {
        .name = "kube-enable-admission-plugins",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Admission plugins of the Kubernetes API that are enabled besides those that are "
                "by default: all that Vigil has, but two of them only with "
                "--kube-authorization-mode=RBAC, because they rely on kube-controller-manager. "
                "ServiceAccount refuses pods until their account is created, and "
                "StorageObjectInUseProtection adds a finalizer to volumes and claims.",
        FIELD(kube_enable_admission_plugins),
    },
    {
        .name = "kube-disable-admission-plugins",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Admission plugins of the Kubernetes API that are disabled, by the names that "
                "Kubernetes has for them.",
        FIELD(kube_disable_admission_plugins),
    },
    {
        .name = "kube-allow-privileged",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Accept pods, and templates of pods, with privileged containers. Under the name "
                "kube-apiserver the flag is --allow-privileged, and the default is false, as "
                "there.",
        FIELD(kube_allow_privileged),
    },
    {
        .name = "kube-service-account-issuer",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "The issuer of the tokens of service accounts, a URL. Of several, the first "
                "issues and all are accepted.",
        FIELD(kube_service_account_issuer),
    },
    {
        .name = "kube-service-account-key-file",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Files (PEM) of public keys, certificates or private keys that verify the tokens "
                "of service accounts: RSA (RS256) or ECDSA (ES256, ES384, ES512). By default the "
                "key of --kube-service-account-signing-key-file.",
        FIELD(kube_service_account_key_file),
    },
    {
        .name = "kube-service-account-signing-key-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file (PEM) of the private key that signs the tokens of service accounts. By "
                "default, and with none of these flags, a key in the data directory, which the "
                "server makes (service-account.key); in front of a cluster none, and no tokens are "
                "issued.",
        FIELD(kube_service_account_signing_key_file),
    },
    {
        .name = "kube-api-audiences",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "The audiences of this server: a token of a service account must be meant for one "
                "of them. By default the issuers.",
        FIELD(kube_api_audiences),
    },
    {
        .name = "kube-bootstrap",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Create the objects that a cluster has from the start, such as the service "
                "kubernetes, priority classes, and the roles of RBAC, with the first request for a "
                "resource. The namespaces are always created.",
        FIELD(kube_bootstrap),
    },
    {
        .name = "kube-advertise-address",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The address of the endpoints of the service kubernetes. Empty: that of the first "
                "URL of --listen-kube-urls. A loopback address has no endpoints, as in Kubernetes.",
        FIELD(kube_advertise_address),
    },
    {
        .name = "kube-service-cluster-ip-range",
        .kind = OPTION_TEXT,
        .fallback = "10.0.0.0/24",
        .help = "The range from which services get their addresses. Of two ranges, separated by a "
                "comma, the first is used.",
        FIELD(kube_service_cluster_ip_range),
    },
    {
        .name = "kube-service-node-port-range",
        .kind = OPTION_TEXT,
        .fallback = "30000-32767",
        .help = "The first and the last node port of services.",
        FIELD(kube_service_node_port_range),
    },
    {
        .name = "kube-undecodable",
        .kind = OPTION_ENUM,
        .fallback = "error",
        .choices = "error|skip",
        .help = "How a watch handles a stored value that is not a JSON object: end with an error, "
                "as Kubernetes does, or skip and count it.",
        FIELD(kube_undecodable),
    },
    {
        .name = "kube-garbage-collector",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Delete objects of the Kubernetes API whose owners are gone, and carry out "
                "deletions in the foreground and with orphans, as kube-controller-manager does. "
                "While a kube-controller-manager holds its lease, this is left to it.",
        FIELD(kube_garbage_collector),
    },
    {
        .name = "kube-namespace-controller",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Delete the objects in a namespace that is being deleted, and then the namespace, "
                "as kube-controller-manager does. While a kube-controller-manager holds its lease, "
                "this is left to it. false: a deleted namespace stays until its objects are "
                "deleted and its finalizer is removed by others, as with a kube-apiserver alone.",
        FIELD(kube_namespace_controller),
    },
    {
        .name = "kube-namespace-objects",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Create the service account default and the config map kube-root-ca.crt in each "
                "namespace, and again when they are deleted or the config map is changed, as "
                "kube-controller-manager does. While a kube-controller-manager holds its lease, "
                "this is left to it; in front of a cluster, always. The config map has the "
                "certificate of --cert-file, and is empty without it. With --kube-bootstrap=false "
                "nothing is created.",
        FIELD(kube_namespace_objects),
    },
    {
        .name = "kube-quota-controller",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Fill in the status of resource quotas, and count again when objects are deleted "
                "or a quota is changed, as kube-controller-manager does. While a "
                "kube-controller-manager holds its lease, this is left to it. false: others write "
                "the status, and until they do, writes that a quota concerns are refused.",
        FIELD(kube_quota_controller),
    },
    {
        .name = "kube-history",
        .kind = OPTION_DURATION,
        .fallback = "5m0s",
        .help = "How long history is kept for watches after the first write through the Kubernetes "
                "API: older revisions of all keys are compacted, as a kube-apiserver does. 0: no "
                "compaction. --auto-compaction-retention takes precedence. In front of a cluster "
                "all Vigils and kube-apiservers agree, by the key compact_rev_key, on one of them "
                "that compacts it.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(kube_history_ns),
    },
    {
        .name = "kube-history-bytes",
        .kind = OPTION_SIZE,
        .fallback = "268435456",
        .help = "When this many bytes were added to the store, history is shortened to three "
                "tenths of --kube-history; 0: no limit.",
        .min = 0,
        .max = 1024L * 1024 * MIB,
        FIELD(kube_history_bytes),
    },
};

const struct option_group serve_kube_options = GROUP("Kubernetes API", kube);
