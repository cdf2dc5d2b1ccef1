/* The paths of vigil/kube/json.h and vigil/kube/protobuf.h: metadata.labels['app'], 2.2[0].1. */
#ifndef VIGIL_KUBECLIENT_DATA_PATH_H
#define VIGIL_KUBECLIENT_DATA_PATH_H

#include "base/slice.h"

enum path_step_type { PATH_KEY, PATH_QUOTED, PATH_INDEX };

struct path_step {
    enum path_step_type type;
    struct slice key;
    size_t index; /* PATH_INDEX */
};

/* Reads the step at *at, which is not at the end of the path, and moves *at behind it. False: the
 * path is malformed. */
MUST_CHECK
bool path_next(const char **at, bool first, struct path_step *ret_step);

#endif
