#include "cmd/serve_options_rows.h"

static const struct option_group *const groups[] = {
    &serve_member_options,  &serve_cluster_options, &serve_request_options,
    &serve_http_options,    &serve_storage_options, &serve_security_options,
    &serve_limit_options,   &serve_logging_options, &serve_monitoring_options,
    &serve_ignored_options, &serve_alias_options,
};

const struct options_table serve_table = {
    .program = "vigil serve",
    .summary = "Keeps versioned keys on disk and serves them to etcd's clients.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
};

const struct options_table serve_etcd_table = {
    .program = "etcd",
    .summary = "Vigil under etcd's name: one node, etcd's flags and API.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
};
