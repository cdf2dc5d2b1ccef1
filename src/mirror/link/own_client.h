/* A client of the cluster in Vigil's own name, with its own thread, over libvigil. */
#ifndef VIGIL_MIRROR_LINK_OWN_CLIENT_H
#define VIGIL_MIRROR_LINK_OWN_CLIENT_H

#include "base/error.h"
#include "mirror/link/options.h"

#include <vigil/client.h>

enum { OWN_CLIENT_RECEIVE_BYTES_MAX = 128 << 20 }; /* limit on the size of one response */

/* ST_INVALID: an option is wrong; ST_IO: a file cannot be read, or there can be no thread. */
MUST_CHECK
enum status own_client_new(const struct upstream_options *options, vigil_client **ret_client,
                           struct error *error);

#endif
