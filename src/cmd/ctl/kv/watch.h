/*
 * watch: one range until the program ends, or several that lines of standard input begin.
 *
 * What arrives is shown as etcdctl does, and a command may be run for each event.
 */
#ifndef VIGIL_CMD_CTL_KV_WATCH_H
#define VIGIL_CMD_CTL_KV_WATCH_H

#include "cmd/ctl/ctl.h"

struct watch_flags {
    bool interactive, prefix, prev_kv, progress_notify;
    int64_t revision;
};

int watch_run(struct ctl *ctl);

#endif
