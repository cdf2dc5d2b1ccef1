/*
 * The examinations of `vigil doctor`: from what a server has said to findings. They ask nothing
 * themselves. The limits are etcd's recommendations where there are some.
 */
#ifndef VIGIL_CMD_CTL_LIVE_CHECKS_H
#define VIGIL_CMD_CTL_LIVE_CHECKS_H

#include "cmd/ctl/live/findings.h"
#include "cmd/ctl/live/metrics.h"

#include <vigil/vigil.h>

/* What is known of one server. */
struct examined {
    const char *endpoint;
    bool is_plain, is_local;             /* without TLS; on a loopback address */
    const vigil_status_response *status; /* NULL: not known */
    int64_t latency_ns;                  /* time that the status took */
    struct metrics metrics;              /* time_ns is 0: not known */
    int64_t wall_s;                      /* the time now */
};

/* One server, with what it says of itself. */
void check_server(struct findings *findings, const struct examined *server);
/* All servers together: one leader, one version, one past. */
void check_together(struct findings *findings, const struct examined *servers, size_t count);
/* The server has sent the list. */
void check_members(struct findings *findings, const struct examined *server,
                   const vigil_members_response *members);
void check_alarms(struct findings *findings, const vigil_alarms_response *alarms);

#endif
