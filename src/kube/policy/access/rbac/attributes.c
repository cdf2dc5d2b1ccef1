#include "kube/policy/access/rbac/attributes.h"

#include "codec/json/field_fault.h"
#include "kube/request/field_selector.h"
#include "kube/request/request.h"
#include "kube/types/kind.h"
#include "kube/types/object/name.h"
#include "wire/http/exchange.h"

#define TEXT(text) SLICE_LITERAL(text)

/* -- Verbs -- */

static struct slice verb_of(const struct http_request *request)
{
    static const struct {
        const char *method, *verb;
    } rows[] = {{"GET", "get"},    {"HEAD", "get"},    {"POST", "create"},
                {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (slice_is(request->method, rows[i].method))
            return slice_from_text(rows[i].verb);
    return SLICE_EMPTY;
}

/* The name of a list or watch that selects one object by its name. */
static struct slice selected_name(struct arena *arena, const struct kube_attributes *a,
                                  struct slice version, struct slice text)
{
    static const struct kube_kind unknown = {.group = "", .version = "", .kind = "", .plural = ""};
    const struct kube_kind *kind = kube_builtin_find(a->group, version, a->resource);
    const struct field_selector *selector;
    struct slice name;
    struct error ignored;
    /* The name becomes part of a path, so one that would change the path is ignored. */
    if (!text.len ||
        field_selector_parse(arena, text, kind ? kind : &unknown, &selector, &ignored) != ST_OK ||
        !field_selector_requires(selector, TEXT("metadata.name"), &name) || !name.len ||
        slice_is(name, ".") || slice_is(name, "..") || memchr(name.ptr, '/', name.len) ||
        memchr(name.ptr, '%', name.len))
        return SLICE_EMPTY;
    return name;
}

/* -- Field selectors -- */

/* Up to the next comma that no backslash precedes. */
static struct slice cut_term(struct slice *rest)
{
    size_t at = 0;
    while (at < rest->len && rest->ptr[at] != ',')
        at += rest->ptr[at] == '\\' && at + 1 < rest->len ? 2 : 1;
    struct slice term = slice_sub(*rest, 0, at);
    *rest = at < rest->len ? slice_sub(*rest, at + 1, rest->len - at - 1) : SLICE_EMPTY;
    return term;
}

/* False: the term has no operator. */
static bool split_term(struct slice term, struct slice *ret_field, bool *ret_equal,
                       struct slice *ret_value)
{
    for (size_t i = 0; i < term.len; i++) {
        bool follows = i + 1 < term.len && term.ptr[i + 1] == '=';
        bool differs = term.ptr[i] == '!' && follows;
        if (term.ptr[i] != '=' && !differs)
            continue;
        size_t end = i + (follows ? 2 : 1);
        *ret_field = slice_sub(term, 0, i);
        *ret_equal = !differs;
        *ret_value = slice_sub(term, end, term.len - end);
        return true;
    }
    return false;
}

/* Compares a value without its escapes. False in *ret_valid: a character must be escaped, or must
 * not be. */
static bool is_value(struct slice escaped, struct slice value, bool *ret_valid)
{
    size_t at = 0;
    bool same = true;
    *ret_valid = true;
    for (size_t i = 0; i < escaped.len && *ret_valid; i++) {
        bool escape = escaped.ptr[i] == '\\';
        i += escape;
        uint8_t c = i < escaped.len ? escaped.ptr[i] : 0;
        bool special = c == '\\' || c == ',' || c == '=';
        *ret_valid = special == escape && i < escaped.len;
        same = same && at < value.len && value.ptr[at] == c;
        at++;
    }
    return same && at == value.len;
}

bool kube_attributes_select(const struct kube_attributes *attributes, struct slice field,
                            struct slice value)
{
    struct slice rest = attributes->field_selector, of, text;
    bool found = false, equal, valid;
    while (rest.len) {
        struct slice term = cut_term(&rest);
        if (!term.len)
            continue;
        if (!split_term(term, &of, &equal, &text))
            return false;
        bool same = is_value(text, value, &valid);
        if (!valid)
            return false;
        found = found || (equal && same && slice_equal(of, field));
    }
    return found;
}

/* -- Paths -- */

static void set_resource(struct arena *arena, const struct http_request *request,
                         const struct kube_path *path, struct kube_attributes *a)
{
    *a = (struct kube_attributes){
        .of_resource = true,
        .verb = path->watch ? TEXT("watch") : verb_of(request),
        .group = path->group,
        .resource = path->resource,
        .subresource = path->subresource,
        .namespace = path->namespace,
        .name = path->name,
    };
    /* As in Kubernetes, the namespace of a namespace is itself. */
    if (slice_is(path->resource, "namespaces") && !path->namespace.len)
        a->namespace = path->name;
    /* A watch by its path, which is deprecated, has no selector here, as in Kubernetes. */
    bool deletes = slice_is(a->verb, "delete");
    if (a->name.len || (!deletes && !slice_is(a->verb, "get")))
        return;
    struct kube_query query;
    struct kube_status ignored;
    /* A request whose query is not valid fails later, whatever it is called here. */
    bool valid = kube_query_parse(arena, request->query, &query, &ignored);
    a->field_selector = valid ? query.field_selector : SLICE_EMPTY;
    if (deletes)
        a->verb = TEXT("deletecollection");
    else
        a->verb = valid && query.watch ? TEXT("watch") : TEXT("list");
    if (!deletes)
        a->name = selected_name(arena, a, path->version, a->field_selector);
}

/* A path with more parts than the handlers know, such as …/pods/x/proxy/y: they do not serve it, and
 * it is a resource all the same. */
static bool cut_path(struct slice path, struct slice *ret_head)
{
    size_t parts = 0, limit = 0;
    for (size_t i = 0; i < path.len; i++) {
        bool begins = path.ptr[i] != '/' && (i == 0 || path.ptr[i - 1] == '/');
        if (begins && ++parts == 1)
            limit = slice_has_prefix(slice_sub(path, i, path.len - i), TEXT("apis/")) ? 8 : 7;
        if (limit && parts > limit) {
            *ret_head = slice_sub(path, 0, i);
            return true;
        }
    }
    return false;
}

void kube_attributes_of(struct arena *arena, const struct http_request *request,
                        struct kube_attributes *ret_attributes)
{
    struct kube_path path;
    struct slice head;
    enum status status = kube_path_parse(arena, request->path, &path);
    if (status == ST_NOT_FOUND && cut_path(request->path, &head))
        status = kube_path_parse(arena, head, &path);
    if (status == ST_OK && path.resource.len)
        set_resource(arena, request, &path, ret_attributes);
    else
        *ret_attributes = (struct kube_attributes){.verb = name_lower(arena, request->method),
                                                   .path = request->path};
}

/* -- The refusal -- */

/* Text that looks like HTML is made harmless, as in Kubernetes. */
static enum status append_safe(struct buf *to, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '&' || c == '<' || c == '>')
            TRY(buf_append_text(to, c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;"));
        else
            TRY(buf_append(to, slice_of(&c, 1)));
    }
    return ST_OK;
}

static enum status append_quoted(struct buf *to, struct slice text)
{
    TRY(buf_append_text(to, "\""));
    TRY(go_escape(text, to));
    return buf_append_text(to, "\"");
}

static enum status append_resource(struct buf *to, const struct kube_attributes *a)
{
    AUTO(buf_fini) struct buf resource = {0};
    TRY(buf_append(&resource, a->resource));
    if (a->subresource.len)
        TRY(buf_append_format(&resource, "/%.*s", SLICE_ARGS(a->subresource)));
    TRY(buf_append_format(to, " cannot %.*s resource ", SLICE_ARGS(a->verb)));
    TRY(append_quoted(to, buf_slice(&resource)));
    TRY(buf_append_text(to, " in API group "));
    TRY(append_quoted(to, a->group));
    if (!a->namespace.len)
        return buf_append_text(to, " at the cluster scope");
    TRY(buf_append_text(to, " in the namespace "));
    return append_quoted(to, a->namespace);
}

static enum status append_sentence(struct buf *to, const struct kube_user_info *user,
                                   const struct kube_attributes *a)
{
    TRY(buf_append_text(to, "User "));
    TRY(append_quoted(to, user->name));
    if (a->of_resource)
        return append_resource(to, a);
    TRY(buf_append_format(to, " cannot %.*s path ", SLICE_ARGS(a->verb)));
    return append_quoted(to, a->path);
}

static enum status append_whole(struct buf *to, const struct kube_user_info *user,
                                const struct kube_attributes *a, const char *reason)
{
    AUTO(buf_fini) struct buf sentence = {0};
    TRY(append_sentence(&sentence, user, a));
    if (a->resource.len)
        TRY(buf_append_format(to, "%.*s%s%.*s ", SLICE_ARGS(a->resource), a->group.len ? "." : "",
                              SLICE_ARGS(a->group)));
    if (a->resource.len && a->name.len) {
        TRY(append_quoted(to, a->name));
        TRY(buf_append_text(to, " "));
    }
    TRY(buf_append_text(to, a->resource.len ? "is forbidden: " : "forbidden: "));
    TRY(append_safe(to, buf_slice(&sentence)));
    if (*reason)
        TRY(buf_append_format(to, ": %s", reason));
    return ST_OK;
}

bool kube_fail_attributes(struct arena *arena, struct kube_status *status,
                          const struct kube_user_info *user, const struct kube_attributes *a,
                          const char *reason)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy;
    if (append_whole(&text, user, a, reason) != ST_OK ||
        arena_dup(arena, buf_slice(&text), &copy) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    kube_fail(status, KUBE_FORBIDDEN, "%s", "");
    status->long_message = copy;
    status->group = a->group;
    status->kind = a->resource;
    status->name = a->name;
    status->bare = !a->resource.len;
    return false;
}
