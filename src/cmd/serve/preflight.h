/*
 * Checks for common reasons why a server cannot start, made before it tries: here the message can
 * name the reason and the remedy, where a failed call deep inside knows only an error number.
 */
#ifndef VIGIL_CMD_SERVE_PREFLIGHT_H
#define VIGIL_CMD_SERVE_PREFLIGHT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Checks that this process can keep its data in `path`: a directory of its own, or one that it can
 * create. Missing parent directories are created, as in etcd. */
MUST_CHECK
enum status preflight_data_dir(const char *path, struct error *error);

/* Logs a warning if other users may enter the data directory. */
void preflight_privacy(const char *path);

/* Raises the limit of open files as far as the system allows. Logs a warning if --max-connections
 * was given and cannot be reached, or if the limit is low for any server. */
void preflight_files(uint64_t connections_max, bool given);

#endif
