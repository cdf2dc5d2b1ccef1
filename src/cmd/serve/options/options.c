#include "cmd/serve/options/options_private.h"

static const struct option_group *const groups[] = {
    &serve_member_options,  &serve_cluster_options, &serve_request_options,
    &serve_http_options,    &serve_kube_options,    &serve_upstream_options,
    &serve_tier_options,    &serve_storage_options, &serve_security_options,
    &serve_limit_options,   &serve_logging_options, &serve_monitoring_options,
    &serve_ignored_options, &serve_alias_options,
};

#define MAN_MORE                                                                                 \
    ".SH CONFIGURATION FILE\n"                                                                   \
    "A file named by \\fB\\-\\-config\\-file\\fR, VIGIL_CONFIG_FILE or ETCD_CONFIG_FILE counts " \
    "alone: "                                                                                    \
    "all other flags and variables are then ignored. It is YAML; its keys are the names of the " \
    "flags. As in etcd's files, TLS flags are in the block "                                     \
    "\\fBclient\\-transport\\-security\\fR (cert\\-file, key\\-file, client\\-cert\\-auth, "     \
    "trusted\\-ca\\-file, auto\\-tls, allowed\\-cn, allowed\\-hostname, crl\\-file), and "       \
    "durations are "                                                                             \
    "numbers of nanoseconds or written like a flag's. Unknown keys are skipped, "                \
    "with "                                                                                      \
    "a line in the log.\n"                                                                       \
    ".SH SIGNALS\n"                                                                              \
    ".TP\nSIGTERM, SIGINT, SIGHUP\nStop: calls under way are answered, watches end with "        \
    "UNAVAILABLE so that clients reconnect. A second signal ends the server at once.\n"          \
    ".TP\nSIGUSR1\nReopen the log files.\n"                                                      \
    ".SH EXIT STATUS\n"                                                                          \
    ".TP\n0\nStopped by a signal (under the name etcd: died by it).\n"                           \
    ".TP\n1\nThe server could not start, or could not continue.\n"                               \
    ".TP\n2\nA flag is unknown or has an invalid value.\n"                                       \
    ".TP\n74\nThe disk could not read a page of a mapped file; the last line of the log names "  \
    "it.\n"

const struct options_table serve_table = {
    .program = "vigil serve",
    .summary = "Keeps versioned keys on disk and serves etcd's and Kubernetes' API from them.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .man_more = MAN_MORE,
};

const struct options_table serve_etcd_table = {
    .program = "etcd",
    .summary = "Vigil under etcd's name: one node, etcd's flags and API.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .man_more = MAN_MORE,
};

const struct options_table serve_apiserver_table = {
    .program = "kube-apiserver",
    .summary = "Vigil under the name of kube-apiserver, in front of an etcd.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .flags_only = true,
};

static bool is_given(const struct options *options, const char *name)
{
    return options_source(options, name) != OPTION_FROM_DEFAULT;
}

void serve_options_note_given(const struct options *options, struct serve_options *values)
{
    values->kube_urls_given = is_given(options, "listen-kube-urls");
    values->cors_given = is_given(options, "cors");
    values->hosts_given = is_given(options, "host-whitelist");
    values->connections_given = is_given(options, "max-connections");
}
