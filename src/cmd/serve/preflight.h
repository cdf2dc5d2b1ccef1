/*
 * What commonly keeps a server from starting, looked at before it tries: then the reason can be
 * told with what to do about it, where a failed call deep inside knows only a number.
 */
#ifndef VIGIL_CMD_SERVE_PREFLIGHT_H
#define VIGIL_CMD_SERVE_PREFLIGHT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether this process can keep its data there: a directory of its own, or one that can be made.
 * Directories above it that are missing are made, as etcd makes them. */
MUST_CHECK
enum status preflight_data_dir(const char *path, struct error *error);

/* Says so in the log if others than its owner may enter it, as whoever made it may have left it. */
void preflight_privacy(const char *path);

/* Raises the limit of open files as far as the system allows. Logs a warning if --max-connections
 * was given and cannot be reached, or if the limit is low for any server. */
void preflight_files(uint64_t connections_max, bool given);

#endif
