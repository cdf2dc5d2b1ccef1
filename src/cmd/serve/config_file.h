/*
 * A file of settings in YAML, as etcd reads with --config-file: keys are the names of flags, with
 * those of TLS in the blocks client-transport-security and peer-transport-security. Lists may be
 * written as lists; durations as etcd wants them, in nanoseconds, or like a flag's value.
 *
 * The file is the operator's own, but still bounded: its size, how deep it nests, and no aliases,
 * with which a few lines stand for gigabytes. Read at start-up, on one thread. Values that options
 * borrow live as long as the file object.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_FILE_H
#define VIGIL_CMD_SERVE_CONFIG_FILE_H

#include "base/options/options.h"

enum { CONFIG_FILE_BYTES_MAX = 1 << 20, CONFIG_FILE_DEPTH_MAX = 16 };

struct config_file;

/* Told of each key that no flag has; etcd passes over them in silence. fn may be NULL. */
struct config_file_listener {
    void (*fn)(void *ctx, const char *key, size_t line);
    void *ctx;
};

MUST_CHECK
enum status config_file_open(const char *path, struct config_file **ret_file, struct error *error);
/* The same from memory. The text is copied. */
MUST_CHECK
enum status config_file_of(const char *name, struct slice text, struct config_file **ret_file,
                           struct error *error);
void config_file_close(struct config_file *file);
DEFINE_CLEANUP(struct config_file *, config_file_close)

/* Sets what the file says. The error names the line. May be called again. */
MUST_CHECK
enum status config_file_apply(struct config_file *file, struct options *options,
                              struct config_file_listener listener, struct error *error);

#endif
