/* --log-rotation-config-json of etcd: when a new log file is started, and which old ones are kept.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_LOG_ROTATION_H
#define VIGIL_CMD_SERVE_CONFIG_LOG_ROTATION_H

#include "base/log/log.h"

/*
 * json: {"maxsize": MB, "maxage": days, "maxbackups": n, "localtime": bool, "compress": bool}, all
 * of which may be missing. outputs must name one file. ret_compress is true when compression was
 * requested, which is not supported.
 */
MUST_CHECK
enum status log_rotation_read(const char *json, const char *outputs,
                              struct log_rotation *ret_rotation, bool *ret_compress,
                              struct error *error);

#endif
