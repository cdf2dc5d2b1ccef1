#include "cmd/serve_options_rows.h"

static const struct option member[] = {
    {
        .name = "name",
        .kind = OPTION_TEXT,
        .fallback = "default",
        .help = "The name of this member, shown in the member list.",
        FIELD(name),
    },
    {
        .name = "data-dir",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "Where the data is kept. Made if missing, private to its user, locked while in "
                "use. Empty: vigil.data, or NAME.etcd when started as etcd.",
        FIELD(data_dir),
    },
    {
        .name = "listen-client-urls",
        .kind = OPTION_LIST,
        .fallback = "http://localhost:2379",
        .help =
            "Where to take gRPC and HTTP from clients: http://HOST:PORT, https://HOST:PORT (with "
            "--cert-file), unix://FILE or unixs://FILE. With port 0 one that is free, which the "
            "log tells.",
        FIELD(listen_client_urls),
    },
    {
        .name = "advertise-client-urls",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "The client URLs shown in the member list. Empty: those it listens on.",
        FIELD(advertise_client_urls),
    },
    {
        .name = "listen-peer-urls",
        .kind = OPTION_LIST,
        .fallback = "http://localhost:2380",
        .help = "Taken for etcd's sake. One node has no peers, so nothing listens there.",
        FIELD(listen_peer_urls),
    },
    {
        .name = "config-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of settings in YAML. All other flags, and variables, are then ignored.",
        .flag_only = true,
        FIELD(config_file),
    },
    {
        .name = "emulate-version",
        .kind = OPTION_TEXT,
        .fallback = "3.7.0",
        .help = "The version of etcd that is told to clients, which choose what to use by it.",
        FIELD(emulate_version),
    },
    {
        .name = "feature-gates",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "NAME=true or NAME=false, comma-separated: features of etcd, none of which makes a "
                "difference here.",
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
        .help = "The peer URLs shown in the member list. At the first start the ids of member "
                "and cluster are made of them and the token, as etcd makes them.",
        FIELD(initial_advertise_peer_urls),
    },
    {
        .name = "initial-cluster",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "NAME=URL of the one member. Empty: --name and --initial-advertise-peer-urls.",
        FIELD(initial_cluster),
    },
    {
        .name = "initial-cluster-token",
        .kind = OPTION_TEXT,
        .fallback = "etcd-cluster",
        .help = "Sets clusters apart that have the same peer URLs.",
        FIELD(initial_cluster_token),
    },
    {
        .name = "initial-cluster-state",
        .kind = OPTION_ENUM,
        .choices = "new|existing",
        .fallback = "new",
        .help = "Taken for etcd's sake: a data directory is opened if there is one.",
        FIELD(initial_cluster_state),
    },
    {
        .name = "strict-reconfig-check",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Refuse to add a member when most would not have started.",
        FIELD(strict_reconfig_check),
    },
    {
        .name = "max-learners",
        .kind = OPTION_INT,
        .fallback = "1",
        .help = "Learners that can be among the members.",
        .min = 0,
        .max = 31,
        FIELD(max_learners),
    },
    {
        .name = "heartbeat-interval",
        .kind = OPTION_INT,
        .fallback = "100",
        .help = "With --election-timeout: decides the shortest lease.",
        FIELD(heartbeat_interval_ms),
    },
    {
        .name = "election-timeout",
        .kind = OPTION_INT,
        .fallback = "1000",
        .help = "In milliseconds: half as long again is the shortest lease, in whole seconds.",
        FIELD(election_timeout_ms),
    },
};

const struct option_group serve_member_options = GROUP("Member", member);
const struct option_group serve_cluster_options = GROUP("Cluster", cluster);
