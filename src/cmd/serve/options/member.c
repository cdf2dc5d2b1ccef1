#include "cmd/serve/options/options_private.h"

static const struct option member[] = {
    FLAG_TEXT("name", serve_options, name, "default",
              "The name of this member, as shown in the member list."),
    FLAG_TEXT("data-dir", serve_options, data_dir, "",
              "The directory that holds the data. It is created if missing, is private to its "
              "owner, and is locked while in use. Empty: vigil.data, or NAME.etcd when started "
              "under the name etcd."),
    FLAG_LIST("listen-client-urls", serve_options, listen_client_urls, "http://localhost:2379",
              "URLs on which clients are served over gRPC and HTTP: http://HOST:PORT, "
              "https://HOST:PORT (needs --cert-file), unix://FILE or unixs://FILE. Port 0 picks "
              "a free port, which the log shows. Empty, which needs --listen-kube-urls: etcd's "
              "API is not served."),
    FLAG_LIST("advertise-client-urls", serve_options, advertise_client_urls, "",
              "The client URLs shown in the member list. Empty: the URLs of --listen-client-urls."),
    FLAG_LIST("listen-peer-urls", serve_options, listen_peer_urls, "http://localhost:2380",
              "Accepted for compatibility with etcd. A single node has no peers, so nothing "
              "listens there."),
    FLAG_TEXT(
        "config-file", serve_options, config_file, "",
        "A YAML file of settings. All other flags and environment variables are then ignored.",
        .flag_only = true),
    FLAG_TEXT("emulate-version", serve_options, emulate_version, "3.7.0",
              "The etcd version reported to clients, some of which enable features by it."),
    FLAG_TEXT("feature-gates", serve_options, feature_gates, "",
              "Comma-separated NAME=true or NAME=false: feature gates of etcd. Only "
              "InitialCorruptCheck has an effect."),
    FLAG_BOOL("version", serve_options, version, "Print the version and exit.", .flag_only = true),
};

static const struct option cluster[] = {
    FLAG_LIST("initial-advertise-peer-urls", serve_options, initial_advertise_peer_urls,
              "http://localhost:2380",
              "The peer URLs shown in the member list. At the first start the member and cluster "
              "IDs are derived from them and from the cluster token, as in etcd."),
    FLAG_TEXT("initial-cluster", serve_options, initial_cluster, "",
              "NAME=URL of the only member. Empty: --name and --initial-advertise-peer-urls."),
    FLAG_TEXT("initial-cluster-token", serve_options, initial_cluster_token, "etcd-cluster",
              "Distinguishes clusters that have the same peer URLs."),
    FLAG_ENUM("initial-cluster-state", serve_options, initial_cluster_state, "new",
              "Accepted for compatibility with etcd: an existing data directory is always opened.",
              "new|existing"),
    FLAG_TRUE("strict-reconfig-check", serve_options, strict_reconfig_check,
              "Refuse to add a member while most members have not started."),
    FLAG_INT("max-learners", serve_options, max_learners, "1",
             "The largest number of learners among the members.", BETWEEN(0, 31)),
    FLAG_INT("heartbeat-interval", serve_options, heartbeat_interval_ms, "100",
             "In milliseconds. Together with --election-timeout it determines the shortest "
             "lease TTL."),
    FLAG_INT("election-timeout", serve_options, election_timeout_ms, "1000",
             "In milliseconds. The shortest lease TTL is one and a half times this, rounded up "
             "to whole seconds."),
};

const struct option_group serve_member_options = GROUP("Member", member);
const struct option_group serve_cluster_options = GROUP("Cluster", cluster);
