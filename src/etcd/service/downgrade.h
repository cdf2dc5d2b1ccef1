/*
 * The version to which a cluster may go back: as etcd reads it and what it allows. Pure. On one
 * node nothing follows from it but that it is kept and shown.
 */
#ifndef VIGIL_ETCD_SERVICE_DOWNGRADE_H
#define VIGIL_ETCD_SERVICE_DOWNGRADE_H

#include "base/slice.h"
#include "base/status.h"

enum { DOWNGRADE_TARGET_BYTES = 32 };

/*
 * Takes "3.6", "3.6.1" or "3.6.0-rc.1+build", of which only 3.6 counts, and checks it against the
 * cluster's version, "3.7.0": the minor version before it, and no other. *ret_target is then
 * "3.6.0". ST_WRONG_DOWNGRADE_VERSION_FORMAT, ST_INVALID_DOWNGRADE_TARGET_VERSION.
 */
MUST_CHECK
enum status downgrade_check(struct slice wanted, const char *cluster_version,
                            char ret_target[DOWNGRADE_TARGET_BYTES]);

#endif
