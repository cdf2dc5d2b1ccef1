/* For the files with the rows of the flags of `vigil serve`; each has one or two groups. */
#ifndef VIGIL_CMD_SERVE_OPTIONS_OPTIONS_PRIVATE_H
#define VIGIL_CMD_SERVE_OPTIONS_OPTIONS_PRIVATE_H

#include "base/options/rows.h"
#include "cmd/serve/options/options.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define MIB INT64_C(1048576)

#define GROUP(heading, array)                                       \
    {                                                               \
        .title = heading, .rows = (array), .count = COUNT_OF(array) \
    }

extern const struct option_group serve_member_options;
extern const struct option_group serve_cluster_options;
extern const struct option_group serve_request_options;
extern const struct option_group serve_http_options;
extern const struct option_group serve_kube_options;
extern const struct option_group serve_upstream_options;
extern const struct option_group serve_tier_options;
extern const struct option_group serve_storage_options;
extern const struct option_group serve_security_options;
extern const struct option_group serve_limit_options;
extern const struct option_group serve_logging_options;
extern const struct option_group serve_monitoring_options;
extern const struct option_group serve_ignored_options;
extern const struct option_group serve_alias_options;

#endif
