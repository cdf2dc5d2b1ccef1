/*
 * The version of etcd 3 that clients see, as --emulate-version takes it: "3.7.0", or a pre-release
 * or build such as "3.8.0-alpha.0" and "3.7.1-rc.2+dirty" (semantic versioning, as etcd reads it).
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_EMULATED_VERSION_H
#define VIGIL_CMD_SERVE_CONFIG_EMULATED_VERSION_H

#include "base/error.h"

enum { EMULATED_VERSION_BYTES_MAX = 64 };

struct emulated_version {
    unsigned major, minor, patch;
};

/* ST_INVALID, with a sentence about the flag. */
MUST_CHECK
enum status emulated_version_read(const char *text, struct emulated_version *ret_version,
                                  struct error *error);

#endif
