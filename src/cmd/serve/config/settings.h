/*
 * Where the settings of a server come from, with etcd's precedence: only the file, if one is named;
 * else flags, then VIGIL_… and ETCD_… variables, then defaults. Read once at start-up, before the
 * logger exists; serve_settings_log logs what is worth a line afterwards.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_SETTINGS_H
#define VIGIL_CMD_SERVE_CONFIG_SETTINGS_H

#include "cmd/serve/config/config_file.h"
#include "cmd/serve/options/options.h"

struct serve_settings {
    struct options options;
    struct serve_options values;
    struct config_file *file; /* owned; NULL: flags and variables */
    const char *path;         /* path of the file */
    char *const *variables;
};

enum settings_outcome {
    SETTINGS_READ,
    SETTINGS_HELP,    /* asked for */
    SETTINGS_VERSION, /* asked for */
    SETTINGS_MISUSED, /* a wrong flag: etcd exits with 2 */
    SETTINGS_WRONG,   /* a wrong variable, file or word: etcd exits with 1 */
};

/* variables is like environ; args and variables are borrowed. The error is set for the last two. */
enum settings_outcome serve_settings_read(struct serve_settings *settings,
                                          const struct options_table *table, int count,
                                          char *const *args, char *const *variables,
                                          struct error *error);
void serve_settings_fini(struct serve_settings *settings);

/* Logs, in etcd's words, which variables or file were used and what is ignored. Fails for a flag
 * that has no effect here but that its user must rely on. */
MUST_CHECK
enum status serve_settings_log(struct serve_settings *settings, struct error *error);

#endif
