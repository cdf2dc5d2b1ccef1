/*
 * lock and elect: a key that exists as long as a lease, which this program renews.
 *
 *     granted ──► waiting ──► holding ──► released
 *                    │           └──► lost: the lease has ended
 *                    └──► interrupted
 */
#ifndef VIGIL_CMD_CTL_KV_LOCK_H
#define VIGIL_CMD_CTL_KV_LOCK_H

#include "cmd/ctl/ctl.h"

struct lock_flags {
    int64_t ttl;
};
struct elect_flags {
    bool listen;
};

int lock_run(struct ctl *ctl);
int elect_run(struct ctl *ctl);

#endif
