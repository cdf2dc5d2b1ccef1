#include "cmd/serve/options_private.h"

static const struct option upstream[] = {
    {
        .name = "upstream-endpoints",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "URLs of the members of an etcd cluster. With them Vigil stores nothing of its "
                "own: it mirrors the cluster, answers reads and watches from the mirror, and "
                "forwards everything else. An empty value is refused, also that of the environment "
                "variable.",
        FIELD(upstream_endpoints),
    },
    {
        .name = "upstream-cacert",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of certificates of the authorities that have signed those of the "
                "cluster's members. Empty: those of this machine.",
        FIELD(upstream_cacert),
    },
    {
        .name = "upstream-cert",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The client certificate that Vigil presents to the cluster, with --upstream-key.",
        FIELD(upstream_cert),
    },
    {
        .name = "upstream-key",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The key of --upstream-cert.",
        FIELD(upstream_key),
    },
    {
        .name = "upstream-server-name",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The name that the certificates of the members must have. Empty: the host of "
                "each endpoint.",
        FIELD(upstream_server_name),
    },
    {
        .name = "upstream-insecure-skip-tls-verify",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Accept any certificate of the members. Only for tests.",
        FIELD(upstream_insecure_skip_tls_verify),
    },
    {
        .name = "upstream-user",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "Vigil's own user in a cluster with authentication, as name:password, or the "
                "name alone with --upstream-password-file. It must be allowed to read everything "
                "that is mirrored; the Kubernetes API also writes with it.",
        .secret = true,
        FIELD(upstream_user),
    },
    {
        .name = "upstream-password-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file whose first line is the password of --upstream-user.",
        FIELD(upstream_password_file),
    },
    {
        .name = "upstream-prefix",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Prefixes of the keys that are mirrored, separated by commas or in several flags. "
                "Reads outside them are forwarded. Empty: all keys.",
        .repeats = true,
        FIELD(upstream_prefix),
    },
    {
        .name = "upstream-reads",
        .kind = OPTION_ENUM,
        .choices = "mirror|forward",
        .fallback = "mirror",
        .help = "Where linearizable reads of etcd's API are answered: from the mirror, once it has "
                "the newest revision of the cluster, or by the cluster.",
        FIELD(upstream_reads),
    },
    {
        .name = "upstream-max-lag",
        .kind = OPTION_INT,
        .fallback = "10000",
        .help = "Revisions by which the mirror may be behind the cluster; further behind it, "
                "reads are forwarded and /readyz fails.",
        .min = 1,
        .max = 1L << 40,
        FIELD(upstream_max_lag),
    },
};

const struct option_group serve_upstream_options = GROUP("In front of an etcd cluster", upstream);
