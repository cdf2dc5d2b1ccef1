/*
 * Parses and checks the target version of a downgrade as etcd does. On a single node the target is
 * only stored and shown.
 */
#ifndef VIGIL_ETCD_SERVICE_DOWNGRADE_H
#define VIGIL_ETCD_SERVICE_DOWNGRADE_H

#include "base/slice.h"
#include "base/status.h"

enum { DOWNGRADE_TARGET_BYTES = 32 };

/*
 * Accepts "3.6", "3.6.1" or "3.6.0-rc.1+build", of which only 3.6 is used. It must be the minor
 * version before the cluster's, such as "3.7.0". *ret_target is then "3.6.0".
 * ST_WRONG_DOWNGRADE_VERSION_FORMAT, ST_INVALID_DOWNGRADE_TARGET_VERSION.
 */
MUST_CHECK
enum status downgrade_check(struct slice wanted, const char *cluster_version,
                            char ret_target[DOWNGRADE_TARGET_BYTES]);

#endif
