/* Commands that look at a running server: their flags, and the functions that run them. */
#ifndef VIGIL_CMD_CTL_LIVE_LIVE_H
#define VIGIL_CMD_CTL_LIVE_LIVE_H

#include "cmd/ctl/session.h"

struct top_flags {
    int64_t interval_ns, count, depth;
    bool once, no_prefixes;
    const char *separator;
    int sort; /* enum prefix_order */
};

struct doctor_flags {
    bool cluster;
};

int live_top(struct ctl *ctl);
int live_doctor(struct ctl *ctl);

#endif
