#include "kubeclient/data/url.h"

#include "wire/http/query.h"

/* -- Paths -- */

/* As Kubernetes: a part of a path is not "." or "..", and has no "/" or "%". */
static bool is_part(const char *text)
{
    return *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 && !strpbrk(text, "/%");
}

static enum status append_part(struct buf *to, const char *what, const char *part,
                               struct error *error)
{
    if (!is_part(part))
        return error_set(error, ST_INVALID, "the %s \"%.80s\" cannot be a part of a path", what,
                         part);
    if (buf_append_text(to, "/") != ST_OK ||
        http_escape_append(to, slice_from_text(part), "") != ST_OK)
        return error_no_memory(error);
    return ST_OK;
}

static enum status append_optional(struct buf *to, const char *what, const char *part,
                                   struct error *error)
{
    return part && *part ? append_part(to, what, part, error) : ST_OK;
}

enum status url_append_target(struct buf *to, const struct vigil_kube_target *target,
                              struct error *error)
{
    bool core = !target->group || !*target->group;
    if (!target->version || !target->resource)
        return error_set(error, ST_INVALID, "a request needs a version and a resource");
    if (target->subresource && *target->subresource && !(target->name && *target->name))
        return error_set(error, ST_INVALID, "the subresource \"%.80s\" needs the name of an object",
                         target->subresource);
    if (buf_append_text(to, core ? "/api" : "/apis") != ST_OK)
        return error_no_memory(error);
    TRY(append_optional(to, "group", target->group, error));
    TRY(append_part(to, "version", target->version, error));
    if (target->name_space && *target->name_space) {
        if (buf_append_text(to, "/namespaces") != ST_OK)
            return error_no_memory(error);
        TRY(append_part(to, "namespace", target->name_space, error));
    }
    TRY(append_part(to, "resource", target->resource, error));
    TRY(append_optional(to, "name", target->name, error));
    return append_optional(to, "subresource", target->subresource, error);
}

enum status url_append_parameter(struct buf *to, size_t *count, const char *name,
                                 struct slice value)
{
    TRY(buf_append_text(to, (*count)++ ? "&" : "?"));
    TRY(http_escape_append(to, slice_from_text(name), ""));
    TRY(buf_append_text(to, "="));
    return http_escape_append(to, value, "");
}
