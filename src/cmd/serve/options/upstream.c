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
    FLAG_ENUM("upstream-reads", serve_options, upstream_reads, "mirror",
              "Where linearizable reads of etcd's API are answered: from the mirror, once it has "
              "the newest revision of the cluster, or by the cluster.",
              "mirror|forward"),
    FLAG_INT("upstream-max-lag", serve_options, upstream_max_lag, "10000",
             "Revisions by which the mirror may be behind the cluster; further behind it, "
             "reads are forwarded and /readyz fails.",
             BETWEEN(1, 1L << 40)),
};

const struct option_group serve_upstream_options = GROUP("In front of an etcd cluster", upstream);
