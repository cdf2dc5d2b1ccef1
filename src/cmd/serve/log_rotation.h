/* --log-rotation-config-json of etcd: when the log file is begun anew, and what is kept. */
#ifndef VIGIL_CMD_SERVE_LOG_ROTATION_H
#define VIGIL_CMD_SERVE_LOG_ROTATION_H

#include "base/log/log.h"

/*
 * json: {"maxsize": MB, "maxage": days, "maxbackups": n, "localtime": bool, "compress": bool}, all
 * of which may be missing. outputs must name one file; ret_compress: asked for, but not done.
 */
MUST_CHECK
enum status log_rotation_read(const char *json, const char *outputs,
                              struct log_rotation *ret_rotation, bool *ret_compress,
                              struct error *error);

#endif
