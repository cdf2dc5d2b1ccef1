#include "cmd/serve/options/options_private.h"

static const struct option upstream[] = {
    FLAG_LIST("upstream-endpoints", serve_options, upstream_endpoints, "",
              "URLs of the members of an etcd cluster. With them Vigil stores nothing of its "
              "own: it mirrors the cluster, answers reads and watches from the mirror, and "
              "forwards everything else. An empty value is refused, also that of the environment "
              "variable."),
    FLAG_TEXT("upstream-cacert", serve_options, upstream_cacert, "",
              "A file of certificates of the authorities that have signed those of the "
              "cluster's members. Empty: those of this machine."),
    FLAG_TEXT("upstream-cert", serve_options, upstream_cert, "",
              "The client certificate that Vigil presents to the cluster, with --upstream-key."),
    FLAG_TEXT("upstream-key", serve_options, upstream_key, "", "The key of --upstream-cert."),
    FLAG_TEXT("upstream-server-name", serve_options, upstream_server_name, "",
              "The name that the certificates of the members must have. Empty: the host of "
              "each endpoint."),
    FLAG_BOOL("upstream-insecure-skip-tls-verify", serve_options, upstream_insecure_skip_tls_verify,
              "Accept any certificate of the members. Only for tests."),
    FLAG_TEXT("upstream-user", serve_options, upstream_user, "",
              "Vigil's own user in a cluster with authentication, as name:password, or the "
              "name alone with --upstream-password-file. It must be allowed to read everything "
              "that is mirrored; the Kubernetes API also writes with it.",
              .secret = true),
    FLAG_TEXT("upstream-password-file", serve_options, upstream_password_file, "",
              "A file whose first line is the password of --upstream-user."),
    FLAG_LIST("upstream-prefix", serve_options, upstream_prefix, "",
              "Prefixes of the keys that are mirrored, separated by commas or in several flags. "
              "Reads outside them are forwarded. Empty: all keys.",
              .repeats = true),
    FLAG_ENUM("upstream-reads", serve_options, upstream_reads, "auto",
              "Where reads that must be current are answered. In front of an etcd cluster: mirror "
              "(the default) is the mirror, once it has the newest revision of the cluster; "
              "forward is the cluster. In front of a kube-apiserver: fence (the default) is the "
              "mirror, once a list of the objects' metadata has shown that it is current; forward "
              "is the kube-apiserver; cached is the mirror as it is, which may be some moments "
              "old.",
              "auto|mirror|forward|fence|cached"),
    FLAG_INT("upstream-max-lag", serve_options, upstream_max_lag, "10000",
             "Revisions by which the mirror may be behind the cluster; further behind it, "
             "reads are forwarded and /readyz fails.",
             BETWEEN(1, 1L << 40)),
};

static const struct option tier[] = {
    FLAG_TEXT("upstream-kubeconfig", serve_options, upstream_kubeconfig, "",
              "A kubeconfig, or several separated by colons, that names a kube-apiserver and the "
              "account of Vigil there. With it Vigil stores nothing of its own: it mirrors the "
              "resources that clients read, answers lists and watches from the mirror, with the "
              "rights that each user has, and passes everything else on. An empty value is "
              "refused, also that of the environment variable."),
    FLAG_BOOL("upstream-in-cluster", serve_options, upstream_in_cluster,
              "The same for the kube-apiserver of the cluster in which Vigil runs as a pod, with "
              "the pod's service account."),
    FLAG_TEXT("upstream-context", serve_options, upstream_context, "",
              "The context of --upstream-kubeconfig. Empty: its current one."),
    FLAG_LIST("upstream-resources", serve_options, upstream_resources, "",
              "Resources that are mirrored from the start, such as pods, deployments.apps or "
              "widgets.v1.example.com, each with :protobuf for that encoding instead of JSON; "
              "separated by commas or in several flags. /readyz fails until they are mirrored. "
              "Others are mirrored when a client reads them.",
              .repeats = true),
    FLAG_DURATION("upstream-rights-ttl", serve_options, upstream_rights_ttl_ns, "10s",
                  "How long the kube-apiserver's answer about what a user may read is used for "
                  "new requests.",
                  BETWEEN(1, HOUR)),
    FLAG_SIZE("upstream-resource-bytes", serve_options, upstream_resource_bytes, "4294967296",
              "The size of one mirrored resource in one encoding, with the keys of its objects. "
              "Requests for a larger one are passed on; 0: no limit.",
              BETWEEN(0, INT64_C(1) << 50)),
    FLAG_SIZE("upstream-mirror-bytes", serve_options, upstream_mirror_bytes, "0",
              "The size of all mirrored resources together. Beyond it the one that was mirrored "
              "last is dropped, and its requests are passed on; those that --upstream-resources "
              "names are dropped last. --kube-history-bytes limits the history in addition. 0: "
              "half of the machine's memory, of the cgroup's limit, or of the address space "
              "(ulimit -v).",
              BETWEEN(0, INT64_C(1) << 50)),
    FLAG_DURATION("upstream-idle", serve_options, upstream_idle_ns, "10m0s",
                  "A resource that no client has read for this long is no longer mirrored, unless "
                  "--upstream-resources names it.",
                  BETWEEN(SECOND, 10000 * HOUR)),
    FLAG_INT("upstream-qps", serve_options, upstream_qps, "0",
             "Calls per second that Vigil makes on its own account, after a burst of twice as "
             "many: the lists, watches and fences of the mirror, and reviews of tokens and rights. "
             "Further ones wait in line; lists and reviews take turns. Calls of clients that are "
             "passed on do not count. 0: no limit.",
             BETWEEN(0, 1000000)),
};

const struct option_group serve_upstream_options = GROUP("In front of an etcd cluster", upstream);
const struct option_group serve_tier_options = GROUP("In front of a kube-apiserver", tier);
