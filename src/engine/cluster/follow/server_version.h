/* What can be concluded from the version of a server, "3.4.30". */
#ifndef VIGIL_ENGINE_CLUSTER_FOLLOW_SERVER_VERSION_H
#define VIGIL_ENGINE_CLUSTER_FOLLOW_SERVER_VERSION_H

#include "base/slice.h"

/* Progress says that everything before it was delivered. In etcd before 3.4.31, and from 3.5.0 to
 * 3.5.7, it may overtake events. False for a text that is not a version. */
bool server_version_has_progress(struct slice version);

#endif
