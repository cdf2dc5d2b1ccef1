#include "cmd/serve/config/settings.h"

#include "base/log/log.h"
#include "cmd/ctl/globals.h"
#include "cmd/serve/config/emulated_version.h"
#include "cmd/serve/config/feature_gates.h"

#include <ctype.h>

/* -- Reading -- */

static const char *variable(const struct serve_settings *settings, const char *name)
{
    size_t len = strlen(name);
    for (char *const *at = settings->variables; *at; at++)
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=' && (*at)[len + 1])
            return *at + len + 1;
    return NULL;
}

static const char *file_path(const struct serve_settings *settings)
{
    if (*settings->values.config_file)
        return settings->values.config_file;
    const char *path = variable(settings, "VIGIL_CONFIG_FILE");
    return path ? path : variable(settings, "ETCD_CONFIG_FILE");
}

/* With a file, flags are ignored. */
static enum status read_file(struct serve_settings *settings, struct error *error)
{
    TRY(config_file_open(settings->path, &settings->file, error));
    options_init(&settings->options, settings->options.table, &settings->values);
    return config_file_apply(settings->file, &settings->options, (struct config_file_listener){0},
                             error);
}

static enum status check_gates(const struct serve_settings *settings, struct error *error)
{
    struct feature_gate gates[FEATURE_GATES];
    struct error why;
    if (feature_gates_read(settings->values.feature_gates, gates, &why) == ST_OK)
        return ST_OK;
    return error_set(error, ST_INVALID, "invalid value \"%.100s\" for flag -feature-gates: %.300s",
                     settings->values.feature_gates, why.text);
}

enum settings_outcome serve_settings_read(struct serve_settings *settings,
                                          const struct options_table *table, int count,
                                          char *const *args, char *const *variables,
                                          struct error *error)
{
    int rest;
    *settings = (struct serve_settings){.variables = variables};
    options_init(&settings->options, table, &settings->values);
    enum status status = options_parse_args(&settings->options, count, args, &rest, error);
    if (status == ST_END)
        return SETTINGS_HELP;
    /* As in etcd, wrong gates on the command line are shown with the usage. Those in a file or in
     * the environment are reported below like any other value. */
    if (status != ST_OK || check_gates(settings, error) != ST_OK)
        return SETTINGS_MISUSED;
    if (rest < count) {
        (void)error_set(error, ST_INVALID, "\"%.200s\" is not a valid flag", args[rest]);
        return SETTINGS_WRONG;
    }
    /* The version that the flags ask for is shown, so it must be right, but a configuration file is
     * not read for it. */
    if (settings->values.version) {
        struct emulated_version version;
        status = emulated_version_read(settings->values.emulate_version, &version, error);
        return status == ST_OK ? SETTINGS_VERSION : SETTINGS_WRONG;
    }
    /* Flags have precedence over variables. With a file neither counts, as in etcd. */
    settings->path = file_path(settings);
    status = settings->path ? read_file(settings, error)
                            : options_parse_environment(&settings->options, variables,
                                                        (struct option_listener){0}, error);
    if (status == ST_OK)
        status = check_gates(settings, error);
    return status == ST_OK ? SETTINGS_READ : SETTINGS_WRONG;
}

void serve_settings_fini(struct serve_settings *settings)
{
    config_file_close(TAKE(settings->file));
}

/* -- Logging -- */

/* VIGIL_ENDPOINTS and the like are for the commands that use a server. */
static bool is_for_client(const char *variable)
{
    const struct options_table *table = ctl_globals_table(CTL_VIGIL);
    char flag[64];
    size_t len = 0;
    if (strncmp(variable, "VIGIL_", 6) != 0)
        return false;
    for (const char *at = variable + 6; *at && len < sizeof(flag); at++)
        flag[len++] = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    return options_find(table, slice_of(flag, len)) != NULL;
}

static void tell_variable(void *ctx, enum option_notice notice, const char *name, const char *value)
{
    (void)ctx;
    switch (notice) {
    case OPTION_ENV_USED:
        log_info("recognized and used environment variable", LOG_TEXT("variable-name", name),
                 LOG_TEXT("variable-value", value));
        break;
    case OPTION_ENV_SHADOWED:
        log_warn("recognized environment variable, but unused: shadowed by corresponding flag",
                 LOG_TEXT("variable-name", name));
        break;
    case OPTION_ENV_UNKNOWN: /* its value may be a secret, so only the name */
        if (!is_for_client(name))
            log_warn("unrecognized environment variable", LOG_TEXT("environment-variable", name));
        break;
    case OPTION_ENV_SPECIAL:
        log_warn("cannot set special environment variable", LOG_TEXT("key", name),
                 LOG_TEXT("value", value));
        break;
    }
}

static void tell_key(void *ctx, const char *key, size_t line)
{
    const struct serve_settings *settings = ctx;
    log_warn("unrecognized setting in the configuration file", LOG_TEXT("path", settings->path),
             LOG_U64("line", line), LOG_TEXT("key", key));
}

static enum status tell_source(struct serve_settings *settings, struct error *error)
{
    if (!settings->file) {
        struct option_listener listener = {.fn = tell_variable};
        return options_parse_environment(&settings->options, settings->variables, listener, error);
    }
    log_info("loaded server configuration, other configuration command line flags and environment "
             "variables will be ignored if provided",
             LOG_TEXT("path", settings->path));
    struct config_file_listener listener = {.fn = tell_key, .ctx = settings};
    return config_file_apply(settings->file, &settings->options, listener, error);
}

enum status serve_settings_log(struct serve_settings *settings, struct error *error)
{
    const struct option *row;
    TRY(tell_source(settings, error));
    for (size_t i = 0; (row = options_row(settings->options.table, i)); i++) {
        if (settings->options.source[i] == OPTION_FROM_DEFAULT || !row->ignored)
            continue;
        if (row->refused)
            return error_set(error, ST_INVALID, "--%s was given, but %s", row->name, row->ignored);
        log_warn("flag is ignored", LOG_TEXT("flag", row->name), LOG_TEXT("reason", row->ignored));
    }
    return ST_OK;
}
