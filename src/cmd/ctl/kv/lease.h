/* lease grant, revoke, timetolive, list and keep-alive; compaction. */
#ifndef VIGIL_CMD_CTL_KV_LEASE_H
#define VIGIL_CMD_CTL_KV_LEASE_H

#include "cmd/ctl/ctl.h"

struct compaction_flags {
    bool physical;
};
struct timetolive_flags {
    bool keys;
};
struct keep_alive_flags {
    bool once;
};

int compaction_run(struct ctl *ctl);
int lease_grant_run(struct ctl *ctl);
int lease_revoke_run(struct ctl *ctl);
int lease_timetolive_run(struct ctl *ctl);
int lease_list_run(struct ctl *ctl);
int lease_keep_alive_run(struct ctl *ctl);

#endif
