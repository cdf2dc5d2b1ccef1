/* What a run needs on the server before it begins, made with blocking calls. */
#ifndef VIGIL_LOAD_SCALE_SETUP_H
#define VIGIL_LOAD_SCALE_SETUP_H

#include "base/error.h"
#include "load/options.h"

#include <vigil/kube/client.h>

/* Namespaces with an account, config maps and a secret; services and endpoint slices. Pods of an
 * earlier run are deleted; what else it has left is used. The options are those of a client. */
MUST_CHECK
enum status scale_setup(const struct bench_options *options, const vigil_kube_options *client,
                        struct error *error);

#endif
