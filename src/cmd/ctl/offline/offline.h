/* Commands of etcdctl 3.4 for the files of an etcd that is not running. */
#ifndef VIGIL_CMD_CTL_OFFLINE_OFFLINE_H
#define VIGIL_CMD_CTL_OFFLINE_OFFLINE_H

#include "cmd/ctl/ctl.h"

struct migrate_flags {
    const char *data_dir, *wal_dir, *transformer;
    bool no_ttl;
};

/* Writes the keys of the v2 store into the database of the v3 API. */
int offline_migrate(struct ctl *ctl);

#endif
