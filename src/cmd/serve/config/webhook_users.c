#include "cmd/serve/config/webhook_users.h"

#include "kubeclient/connect/impersonation.h"
#include "kubeclient/connect/kubeconfig.h"
#include "wire/http/basic_auth.h"
#include "wire/http/http1/parser.h"

#include <string.h>

/* Without memory the arena remembers it. */
static struct slice dup(struct arena *arena, struct slice text)
{
    struct slice copy;
    return arena_dup(arena, text, &copy) == ST_OK ? copy : SLICE_EMPTY;
}

/* "": there is none. */
static const char *dup_text(struct arena *arena, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 1;
    char *copy = arena_alloc(arena, bytes);
    return copy ? memcpy(copy, text ? text : "", bytes) : "";
}

/* -- Fields -- */

static void add_field(struct arena *arena, struct http_field *fields, size_t *count,
                      struct slice name, struct slice value)
{
    fields[(*count)++] = (struct http_field){dup(arena, name), dup(arena, value)};
}

/* "Bearer …" or "Basic …"; empty: neither. A token in a file is not a fixed field. */
static enum status append_authorization(const struct kubeconfig *user, struct buf *to)
{
    if (user->token_file)
        return ST_OK;
    if (user->token) {
        TRY(buf_append_text(to, "Bearer "));
        return buf_append_text(to, user->token);
    }
    if (!user->user && !user->password)
        return ST_OK;
    return http_basic_auth_append(to, user->user ? user->user : "",
                                  user->password ? user->password : "");
}

static enum status make_fields(const struct kubeconfig *user, const struct impersonation *as,
                               struct arena *arena, struct kube_webhook_credentials *row,
                               struct error *why)
{
    AUTO(buf_fini) struct buf authorization = {0};
    struct http_field *fields = arena_calloc(arena, as->count + 1, sizeof(*fields));
    if (!fields || append_authorization(user, &authorization) != ST_OK)
        return error_no_memory(why);
    if (!http1_is_field_value(buf_slice(&authorization)))
        return error_set(why, ST_INVALID, "the token contains line ends or zeros");
    if (authorization.len)
        add_field(arena, fields, &row->field_count, SLICE_LITERAL("authorization"),
                  buf_slice(&authorization));
    for (size_t i = 0; i < as->count; i++)
        add_field(arena, fields, &row->field_count, as->fields[i].name, as->fields[i].value);
    row->fields = fields;
    if (row->field_count + 1 > KUBE_WEBHOOK_FIELDS_MAX)
        return error_set(why, ST_LIMIT, "it impersonates with more than %d header fields",
                         KUBE_WEBHOOK_FIELDS_MAX - 1);
    return ST_OK;
}

/* -- Users -- */

static enum status read_user(const struct kubeconfig_user *user, struct arena *arena,
                             struct kube_webhook_credentials *row, struct error *why)
{
    const struct kubeconfig *config = &user->config;
    struct impersonation as;
    if (config->exec.command)
        return error_set(
            why, ST_UNIMPLEMENTED,
            "it needs the exec plugin %.100s, which is not run for webhooks: give it a "
            "token, a tokenFile, a password or a client certificate",
            config->exec.command);
    TRY(impersonation_init(&as, &config->impersonate, why));
    *row = (struct kube_webhook_credentials){
        .hosts = dup(arena, slice_from_text(user->name)),
        .token = dup_text(arena, config->token),
        .token_file = dup_text(arena, config->token_file),
        .cert_file = dup_text(arena, config->cert.data.len ? NULL : config->cert.file),
        .key_file = dup_text(arena, config->key.data.len ? NULL : config->key.file),
        .cert_pem = dup(arena, config->cert.data),
        .key_pem = dup(arena, config->key.data),
    };
    enum status status = make_fields(config, &as, arena, row, why);
    impersonation_fini(&as);
    return status;
}

static enum status read_all(const struct kubeconfig_users *from, struct arena *arena,
                            struct kube_webhook_users *ret_users, struct error *error)
{
    struct kube_webhook_credentials *rows = arena_calloc(arena, from->count + 1, sizeof(*rows));
    struct kube_webhook_users users = {.rows = rows};
    if (!rows)
        return error_no_memory(error);
    for (size_t i = 0; i < from->count; i++) {
        struct error why;
        enum status status = read_user(&from->items[i], arena, &rows[i], &why);
        if (status != ST_OK)
            return error_set(error, status, "user \"%.100s\": %.500s", from->items[i].name,
                             why.text);
        if (from->current && strcmp(from->current, from->items[i].name) == 0)
            users.others = &rows[i];
        users.count++;
    }
    *ret_users = users;
    return ST_OK;
}

enum status webhook_users_read(const char *path, struct arena *arena,
                               struct kube_webhook_users *ret_users, struct error *error)
{
    struct kubeconfig_users users;
    struct error why;
    TRY(kubeconfig_users_load(path, &users, error));
    enum status status = read_all(&users, arena, ret_users, &why);
    if (arena_ran_out(arena))
        status = error_set(&why, ST_LIMIT, "it is too large");
    kubeconfig_users_fini(&users);
    return status == ST_OK ? ST_OK : error_set(error, status, "%.300s: %.650s", path, why.text);
}
