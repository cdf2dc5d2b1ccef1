/* What other views and readers use of the lazy view of JSON (vigil/kube/json.h). */
#ifndef VIGIL_KUBECLIENT_DATA_JSON_H
#define VIGIL_KUBECLIENT_DATA_JSON_H

#include "base/slice.h"

#include <vigil/kube/json.h>

/* -- Paths: metadata.labels['app'], or in protobuf 2.2[0].1 -- */

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

/* -- Texts -- */

/* The text of a JSON string that is a part of `json`. It is empty if there is no string at the
 * path, or one with escapes: names and versions of Kubernetes have none. */
vigil_bytes json_plain_text(vigil_bytes json, const char *path);

#endif
