#include "kubeclient/connect/impersonation.h"

#include "base/buf.h"
#include "wire/http/http1/parser.h"
#include "wire/http/query.h"

static size_t count_fields(const struct kubeconfig_impersonation *as)
{
    size_t count = 2 + as->extra_count;
    for (const char *const *group = as->groups; group && *group; group++)
        count++;
    return count;
}

static enum status add(struct impersonation *i, struct slice name, const char *text,
                       struct error *error)
{
    struct slice value = slice_from_text(text);
    if (!http1_is_field_value(value))
        return error_set(error, ST_INVALID,
                         "the value of \"%.*s\" contains line ends or other control characters",
                         SLICE_ARGS(name));
    i->fields[i->count++] = (struct http_field){name, value};
    return ST_OK;
}

/* A key may contain anything: what cannot be a part of a name is escaped, and so is "%". Servers
 * ignore the case of a key. */
static enum status add_extra(struct impersonation *i, const struct kubeconfig_extra *extra,
                             struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice name;
    if (buf_append_text(&text, "impersonate-extra-") != ST_OK ||
        http_escape_append(&text, slice_from_text(extra->key), "!#$&'*+^`|") != ST_OK)
        return error_no_memory(error);
    for (size_t at = 0; at < text.len; at++)
        if (text.ptr[at] >= 'A' && text.ptr[at] <= 'Z')
            text.ptr[at] = (uint8_t)(text.ptr[at] - 'A' + 'a');
    if (arena_dup(&i->arena, buf_slice(&text), &name) != ST_OK)
        return error_no_memory(error);
    return add(i, name, extra->value, error);
}

static enum status add_all(struct impersonation *i, const struct kubeconfig_impersonation *as,
                           struct error *error)
{
    i->fields = arena_calloc(&i->arena, count_fields(as), sizeof(*i->fields));
    if (!i->fields)
        return error_no_memory(error);
    TRY(add(i, SLICE_LITERAL("impersonate-user"), as->user, error));
    if (as->uid)
        TRY(add(i, SLICE_LITERAL("impersonate-uid"), as->uid, error));
    for (const char *const *group = as->groups; group && *group; group++)
        TRY(add(i, SLICE_LITERAL("impersonate-group"), *group, error));
    for (size_t at = 0; at < as->extra_count; at++)
        TRY(add_extra(i, &as->extra[at], error));
    return ST_OK;
}

enum status impersonation_init(struct impersonation *impersonation,
                               const struct kubeconfig_impersonation *as, struct error *error)
{
    struct impersonation made = {0};
    arena_init(&made.arena, NULL, 0, KUBECONFIG_ARENA_BYTES_MAX);
    enum status status = as->user ? add_all(&made, as, error) : ST_OK;
    if (status == ST_OK)
        *impersonation = made;
    else
        arena_fini(&made.arena);
    return status;
}

void impersonation_fini(struct impersonation *impersonation)
{
    arena_fini(&impersonation->arena);
}
