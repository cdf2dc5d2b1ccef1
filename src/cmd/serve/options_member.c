#include "cmd/serve/options_private.h"

static const struct option member[] = {
    {
        .name = "name",
        .kind = OPTION_TEXT,
        .fallback = "default",
        .help = "The name of this member, as shown in the member list.",
        FIELD(name),
    },
    {
        .name = "data-dir",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "The directory that holds the data. It is created if missing, is private to its "
                "owner, and is locked while in use. Empty: vigil.data, or NAME.etcd when started "
                "under the name etcd.",
        FIELD(data_dir),
    },
    {
        .name = "listen-client-urls",
        .kind = OPTION_LIST,
        .fallback = "http://localhost:2379",
        .help = "URLs on which clients are served over gRPC and HTTP: http://HOST:PORT, "
                "https://HOST:PORT (needs --cert-file), unix://FILE or unixs://FILE. Port 0 picks "
                "a free port, which the log shows. Empty, which needs --listen-kube-urls: etcd's "
                "API is not served.",
        FIELD(listen_client_urls),
    },
    {
        .name = "advertise-client-urls",
        .kind = OPTION_LIST,
        .fallback = "",
        .help =
            "The client URLs shown in the member list. Empty: the URLs of --listen-client-urls.",
        FIELD(advertise_client_urls),
    },
    {
        .name = "listen-peer-urls",
        .kind = OPTION_LIST,
        .fallback = "http://localhost:2380",
        .help = "Accepted for compatibility with etcd. A single node has no peers, so nothing "
                "listens there.",
        FIELD(listen_peer_urls),
    },
    {
        .name = "config-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help =
            "A YAML file of settings. All other flags and environment variables are then ignored.",
        .flag_only = true,
        FIELD(config_file),
    },
    {
        .name = "emulate-version",
        .kind = OPTION_TEXT,
        .fallback = "3.7.0",
        .help = "The etcd version reported to clients, some of which enable features by it.",
        FIELD(emulate_version),
    },
    {
        .name = "feature-gates",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "Comma-separated NAME=true or NAME=false: feature gates of etcd. Only "
                "InitialCorruptCheck has an effect.",
        FIELD(feature_gates),
    },
    {
        .name = "version",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Print the version and exit.",
        .flag_only = true,
        FIELD(version),
    },
};

static const struct option cluster[] = {
    {
        .name = "initial-advertise-peer-urls",
        .kind = OPTION_LIST,
        .fallback = "http://localhost:2380",
        .help = "The peer URLs shown in the member list. At the first start the member and cluster "
                "IDs are derived from them and from the cluster token, as in etcd.",
        FIELD(initial_advertise_peer_urls),
    },
    {
        .name = "initial-cluster",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "NAME=URL of the only member. Empty: --name and --initial-advertise-peer-urls.",
        FIELD(initial_cluster),
    },
    {
        .name = "initial-cluster-token",
        .kind = OPTION_TEXT,
        .fallback = "etcd-cluster",
        .help = "Distinguishes clusters that have the same peer URLs.",
        FIELD(initial_cluster_token),
    },
    {
        .name = "initial-cluster-state",
        .kind = OPTION_ENUM,
        .choices = "new|existing",
        .fallback = "new",
        .help =
            "Accepted for compatibility with etcd: an existing data directory is always opened.",
        FIELD(initial_cluster_state),
    },
    {
        .name = "strict-reconfig-check",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Refuse to add a member while most members have not started.",
        FIELD(strict_reconfig_check),
    },
    {
        .name = "max-learners",
        .kind = OPTION_INT,
        .fallback = "1",
        .help = "The largest number of learners among the members.",
        .min = 0,
        .max = 31,
        FIELD(max_learners),
    },
    {
        .name = "heartbeat-interval",
        .kind = OPTION_INT,
        .fallback = "100",
        .help = "In milliseconds. Together with --election-timeout it determines the shortest "
                "lease TTL.",
        FIELD(heartbeat_interval_ms),
    },
    {
        .name = "election-timeout",
        .kind = OPTION_INT,
        .fallback = "1000",
        .help = "In milliseconds. The shortest lease TTL is one and a half times this, rounded up "
                "to whole seconds.",
        FIELD(election_timeout_ms),
    },
};

const struct option_group serve_member_options = GROUP("Member", member);
const struct option_group serve_cluster_options = GROUP("Cluster", cluster);
