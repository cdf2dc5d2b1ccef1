#include "kubeclient/connect/exec_plugin.h"

#include "codec/utf8.h"
#include "io/loop.h"
#include "io/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CA_BYTES_MAX = 16 << 20, ARENA_BYTES_MAX = 64 << 20, SHOWN_BYTES_MAX = 200 };

extern char **environ;

struct exec_plugin {
    struct exec_plugin_options options;
    struct arena arena;
    const char *const *args; /* in the arena, as are the others */
    const char *const *env;
    const char *path_list; /* PATH; NULL: not set */
    struct child *child;   /* NULL: no program runs */
    struct deferred later; /* pending: the program could not be started */
    struct error failure;  /* why */
};

/* -- Its environment -- */

static size_t count_texts(const char *const *texts)
{
    size_t count = 0;
    while (texts && texts[count])
        count++;
    return count;
}

static bool is_named_in(const char *variable, const char *const *list)
{
    size_t len = strcspn(variable, "=");
    for (; list && *list; list++)
        if (strncmp(variable, *list, len) == 0 && (*list)[len] == '=')
            return true;
    return false;
}

static const char *copy_text(struct exec_plugin *p, const char *text)
{
    struct slice copy;
    return arena_dup(&p->arena, slice_of(text, strlen(text) + 1), &copy) == ST_OK
               ? (const char *)copy.ptr
               : NULL;
}

/* The program's variables that are not replaced. They are copied, because the program may change
 * them later. */
static enum status add_inherited(struct exec_plugin *p, const char **env, size_t *count)
{
    for (char *const *variable = environ; variable && *variable; variable++) {
        if (is_named_in(*variable, p->options.config->exec.env) ||
            strncmp(*variable, "KUBERNETES_EXEC_INFO=", 21) == 0)
            continue;
        if (!(env[*count] = copy_text(p, *variable)))
            return ST_NOMEM;
        if (strncmp(*variable, "PATH=", 5) == 0)
            p->path_list = env[*count] + 5;
        ++*count;
    }
    return ST_OK;
}

/* The cluster's authorities, as PEM. */
static enum status read_ca(const struct kubeconfig *config, struct buf *to, struct error *error)
{
    if (!config->exec.wants_cluster_info)
        return ST_OK;
    if (config->ca.data.len)
        return buf_append(to, config->ca.data) == ST_OK ? ST_OK : error_no_memory(error);
    return config->ca.file
               ? whole_file_read(config->ca.file, WHOLE_FILE_REGULAR, CA_BYTES_MAX, to, error)
               : ST_OK;
}

static enum status make_env(struct exec_plugin *p, struct error *error)
{
    const char *const *own = p->options.config->exec.env;
    size_t own_count = count_texts(own), count = 0;
    if (own_count > EXEC_PLUGIN_VARIABLES_MAX)
        return error_set(error, ST_LIMIT, "an exec plugin may have %d variables",
                         EXEC_PLUGIN_VARIABLES_MAX);
    size_t room = count_texts((const char *const *)environ) + own_count + 2;
    const char **env = arena_calloc(&p->arena, room, sizeof(*env));
    if (!env || add_inherited(p, env, &count) != ST_OK)
        return error_no_memory(error);
    for (size_t i = 0; i < own_count; i++)
        if (!is_named_in(own[i], own + i + 1)) /* the last one counts */
            env[count++] = own[i];
    p->env = env;
    /* The plugin learns from JSON for which cluster it is called. */
    AUTO(buf_fini) struct buf ca = {0}, info = {0};
    TRY(read_ca(p->options.config, &ca, error));
    if (buf_append_text(&info, "KUBERNETES_EXEC_INFO=") != ST_OK ||
        exec_credential_write(&info, p->options.config, buf_slice(&ca)) != ST_OK ||
        buf_append(&info, slice_of("", 1)) != ST_OK ||
        !(env[count] = copy_text(p, (const char *)info.ptr)))
        return error_no_memory(error);
    return ST_OK;
}

static enum status make_args(struct exec_plugin *p, struct error *error)
{
    const struct kubeconfig_exec *exec = &p->options.config->exec;
    size_t count = count_texts(exec->args);
    const char **args = arena_calloc(&p->arena, count + 2, sizeof(*args));
    if (!args)
        return error_no_memory(error);
    args[0] = exec->command;
    for (size_t i = 0; i < count; i++)
        args[i + 1] = exec->args[i];
    p->args = args;
    return ST_OK;
}

/* -- Errors -- */

/* The first character without control characters, which could change a terminal, and bytes that are
 * not UTF-8. */
static struct slice clean_char(struct slice text)
{
    size_t len = utf8_char_len(text);
    bool control = text.ptr[0] < ' ' || text.ptr[0] == 0x7f ||
                   (len == 2 && text.ptr[0] == 0xc2 && text.ptr[1] < 0xa0);
    return control || !len ? SLICE_LITERAL(" ") : slice_sub(text, 0, len);
}

/* The beginning of what the plugin or the kubeconfig says, on one line. */
static const char *shown(struct slice from, char to[SHOWN_BYTES_MAX + 1])
{
    size_t len = 0;
    for (size_t step; from.len; from = slice_sub(from, step, from.len - step)) {
        struct slice c = clean_char(from);
        step = size_max(utf8_char_len(from), 1);
        if (len + c.len > SHOWN_BYTES_MAX)
            break;
        if (c.ptr[0] == ' ' && (!len || to[len - 1] == ' '))
            continue;
        slice_copy(to + len, c);
        len += c.len;
    }
    len -= len && to[len - 1] == ' ';
    to[len] = 0;
    return to;
}

/* "exec plugin NAME WHAT: what it printed to its standard error". */
static enum status fail(const struct exec_plugin *p, enum status status, struct slice errors,
                        struct error *error, const char *what)
{
    char text[SHOWN_BYTES_MAX + 1];
    shown(errors, text);
    return error_set(error, status, "exec plugin %.100s %s%s%s", p->options.config->exec.command,
                     what, *text ? ": " : "", text);
}

static enum status fail_start(const struct exec_plugin *p, enum status status, const char *reason,
                              struct error *error)
{
    char hint[SHOWN_BYTES_MAX + 1] = "";
    const struct kubeconfig_exec *exec = &p->options.config->exec;
    if (exec->install_hint)
        shown(slice_from_text(exec->install_hint), hint);
    return error_set(error, status, "exec plugin %.100s cannot be run: %s%s%s", exec->command,
                     reason, *hint ? ". " : "", hint);
}

/* -- The end of a run -- */

static void end(struct exec_plugin *p, enum status status, const struct exec_credential *found,
                const struct error *error)
{
    p->options.on_end(p->options.ctx, status, found, error);
}

/* ST_OK: its output may be read. */
static enum status judge(const struct exec_plugin *p, const struct child_result *result,
                         struct error *error)
{
    char what[64];
    switch (result->end) {
    case CHILD_EXITED:
        if (result->number == 0)
            return ST_OK;
        snprintf(what, sizeof(what), "failed with exit code %d", result->number);
        return fail(p, ST_IO, result->errors, error, what);
    case CHILD_SIGNALED:
        snprintf(what, sizeof(what), "was ended by signal %d", result->number);
        return fail(p, ST_IO, result->errors, error, what);
    case CHILD_VANISHED:
        return ST_OK;
    case CHILD_TOO_MUCH:
        snprintf(what, sizeof(what), "printed more than %d bytes", CHILD_OUTPUT_BYTES_MAX);
        return fail(p, ST_LIMIT, result->errors, error, what);
    case CHILD_TOO_LONG:
        snprintf(what, sizeof(what), "was not done after %d s",
                 (int)(CHILD_TIME_NS_MAX / NS_PER_S));
        return fail(p, ST_TIMEOUT, result->errors, error, what);
    case CHILD_BROKEN:
        break;
    }
    return result->number == ENOMEM ? error_no_memory(error)
                                    : fail(p, ST_IO, result->errors, error, "cannot be read");
}

/* A bad output of a program whose exit code is unknown is most likely that of a failed one. */
static enum status read_output(const struct exec_plugin *p, const struct child_result *result,
                               struct arena *arena, struct exec_credential *ret_found,
                               struct error *error)
{
    struct error why = {0};
    const struct kubeconfig_exec *exec = &p->options.config->exec;
    enum status status =
        exec_credential_read(arena, result->output, exec->api_version, ret_found, &why);
    if (status == ST_OK)
        return ST_OK;
    if (status == ST_NOMEM)
        return error_no_memory(error);
    char what[SHOWN_BYTES_MAX + 64];
    bool known = result->end == CHILD_EXITED;
    snprintf(what, sizeof(what), "is of no use: %.*s%s", SHOWN_BYTES_MAX, why.text,
             known ? "" : " (its exit code is unknown)");
    return fail(p, status, result->errors, error, what);
}

static void on_done(void *ctx, const struct child_result *result)
{
    struct exec_plugin *p = ctx;
    struct arena arena;
    struct exec_credential found;
    struct error error = {0};
    AUTO(child_freep) struct child *child = TAKE(p->child); /* the result is in it */
    arena_init(&arena, NULL, 0, EXEC_CREDENTIAL_ARENA_BYTES_MAX);
    enum status status = judge(p, result, &error);
    if (status == ST_OK)
        status = read_output(p, result, &arena, &found, &error);
    end(p, status, status == ST_OK ? &found : NULL, &error);
    arena_fini(&arena);
    (void)child;
}

static void on_later(struct deferred *deferred)
{
    struct exec_plugin *p = CONTAINER_OF(deferred, struct exec_plugin, later);
    struct error error = p->failure;
    end(p, error.status, NULL, &error);
}

/* -- Running -- */

/* As in Go, a program in the current directory is not run by accident. */
static enum status find_program(const struct exec_plugin *p, struct buf *path, struct error *error)
{
    const char *command = p->options.config->exec.command;
    struct slice rest = p->path_list ? slice_from_text(p->path_list) : SLICE_EMPTY;
    if (strchr(command, '/'))
        return buf_append(path, slice_of(command, strlen(command) + 1)) == ST_OK
                   ? ST_OK
                   : error_no_memory(error);
    while (rest.len) {
        struct slice directory = slice_cut(&rest, ':');
        if (!directory.len || directory.ptr[0] != '/')
            continue;
        path->len = 0;
        if (buf_append_format(path, "%.*s/%s", SLICE_ARGS(directory), command) != ST_OK ||
            buf_append(path, slice_of("", 1)) != ST_OK)
            return error_no_memory(error);
        const char *candidate = (const char *)path->ptr;
        struct stat found;
        if (stat(candidate, &found) == 0 && S_ISREG(found.st_mode) && access(candidate, X_OK) == 0)
            return ST_OK;
    }
    return fail_start(p, ST_NOT_FOUND, "it was not found in PATH", error);
}

static enum status start(struct exec_plugin *p, struct error *error)
{
    AUTO(buf_fini) struct buf path = {0};
    struct error why = {0};
    TRY(find_program(p, &path, error));
    struct child_params params = {
        .path = (const char *)path.ptr,
        .args = p->args,
        .env = p->env,
        .output_bytes_max = CHILD_OUTPUT_BYTES_MAX,
        .time_ns_max = CHILD_TIME_NS_MAX,
        .done = on_done,
        .ctx = p,
    };
    enum status status = child_start(p->options.runner, p->options.loop, &params, &p->child, &why);
    if (status == ST_NOMEM)
        return error_no_memory(error);
    return status == ST_OK ? ST_OK : fail_start(p, status, why.text, error);
}

void exec_plugin_run(struct exec_plugin *p)
{
    assert(!exec_plugin_runs(p));
    p->failure = (struct error){0};
    if (start(p, &p->failure) != ST_OK)
        loop_defer(p->options.loop, &p->later);
}

bool exec_plugin_runs(const struct exec_plugin *p)
{
    return p->child || (p->later.in_loop.next && !list_empty(&p->later.in_loop));
}

/* -- Making -- */

static enum status init(struct exec_plugin *p, struct error *error)
{
    const struct kubeconfig_exec *exec = &p->options.config->exec;
    if (!exec->api_version || !exec_credential_version_known(exec->api_version))
        return error_set(error, ST_INVALID,
                         "exec plugin %.100s: version \"%.80s\" is not supported, only "
                         "client.authentication.k8s.io/v1 and /v1beta1",
                         exec->command, exec->api_version ? exec->api_version : "");
    TRY(make_args(p, error));
    return make_env(p, error);
}

enum status exec_plugin_new(const struct exec_plugin_options *options,
                            struct exec_plugin **ret_plugin, struct error *error)
{
    AUTO(exec_plugin_freep) struct exec_plugin *p = calloc(1, sizeof(*p));
    if (!p)
        return error_no_memory(error);
    p->options = *options;
    p->later.fn = on_later;
    arena_init(&p->arena, NULL, 0, ARENA_BYTES_MAX);
    TRY(init(p, error));
    *ret_plugin = TAKE(p);
    return ST_OK;
}

void exec_plugin_free(struct exec_plugin *p)
{
    if (!p)
        return;
    child_free(p->child);
    loop_defer_cancel(&p->later);
    arena_fini(&p->arena);
    free(p);
}
