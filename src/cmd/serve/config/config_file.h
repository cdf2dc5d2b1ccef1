/*
 * A YAML file of settings, as etcd reads it with --config-file. The keys are the names of flags;
 * those of TLS are in the blocks client-transport-security and peer-transport-security. Lists may
 * be YAML lists; durations are nanoseconds, as in etcd, or text like a flag's value.
 *
 * The file belongs to the operator but is bounded all the same: in size, in depth, and without
 * aliases, with which a few lines expand to gigabytes. Read at start-up on one thread. Values that
 * options borrow live as long as the file object.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_CONFIG_FILE_H
#define VIGIL_CMD_SERVE_CONFIG_CONFIG_FILE_H

#include "base/options/options.h"

enum { CONFIG_FILE_BYTES_MAX = 1 << 20, CONFIG_FILE_DEPTH_MAX = 16 };

struct config_file;

/* Called for each key that is not a flag; etcd ignores such keys silently. fn may be NULL. */
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

/* Sets the options from the file. The error names the line. May be called again. */
MUST_CHECK
enum status config_file_apply(struct config_file *file, struct options *options,
                              struct config_file_listener listener, struct error *error);

#endif
